"""Comparisons as tables: configurations in their order, then those that were refused, and why."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from costsvc.quoting.tables.table import Column, Row, Table, numbers, texts

_USD: Final = "usd"
_HEAD: Final = ("as_of", "catalog_revision", "engine_version")
_IDENTITY: Final = (Column("as_of", "day"), *numbers("catalog_revision"), *texts("engine_version"))
_CONFIGURATION: Final = (
    *texts("gpu", "weights", "kv", "mode"),
    *numbers("gpus", "tp", "pp", "dp", "ep", "concurrency"),
    *texts("bound"),
    Column("keeps_objectives", "flag"),
    *numbers("tpot_ms", "ttft_ms", "output_tok_s_per_user", "usd_per_gpu_hour", "request_usd"),
    *numbers("input_usd_per_mtok", "cached_input_usd_per_mtok", "output_usd_per_mtok"),
    *numbers("blended_usd_per_mtok", "fleet_gpus", "usd_per_month"),
)


def _and_in_currency(*columns: Column) -> tuple[Column, ...]:
    """Columns, and after them those of US dollars in the asked currency."""
    of_usd = (column.name for column in columns if _USD in column.name.split("_"))
    return (*columns, *texts("currency"), *numbers(*(name.replace(_USD, "currency") for name in of_usd)))


_BAND: Final = numbers("blended_low_usd_per_mtok", "blended_high_usd_per_mtok")
_GROUNDS: Final = (*_BAND, *numbers("gpu_price_providers"), *texts("gpu_price_basis"))
COLUMNS: Final = _and_in_currency(*_IDENTITY, *_CONFIGURATION, *texts("error"), *_GROUNDS)
CURVE_COLUMNS: Final = _and_in_currency(
    *_IDENTITY, *numbers("ctx"), *_CONFIGURATION, *texts("cliffs", "error"), *_GROUNDS
)
FRONTIER_COLUMNS: Final = _and_in_currency(
    *_IDENTITY,
    *texts("gpu"),
    Column("on_front", "flag"),
    *numbers("gpus", "tp", "pp", "dp", "ep", "concurrency"),
    *texts("bound"),
    *numbers("output_tok_s_per_user", "tpot_ms", "ttft_ms", "blended_usd_per_mtok"),
    *texts("error"),
    *_BAND,
)


def comparison_table(compared: Mapping[str, Any]) -> Table:
    """The table of what `/compare` answers."""
    return Table(name="configurations", row_name="configuration", columns=COLUMNS, rows=_rows(compared))


def curve_table(drawn: Mapping[str, Any]) -> Table:
    """The table of what `/curve` answers: a row per context, with the cliffs since the one before."""
    return Table(name="contexts", row_name="context", columns=CURVE_COLUMNS, rows=_contexts(drawn))


def frontier_table(found: Mapping[str, Any]) -> Table:
    """The table of what `/frontier` answers: the front of each GPU, and which points are on that of all."""
    return Table(name="points", row_name="point", columns=FRONTIER_COLUMNS, rows=_points(found))


def _rows(compared: Mapping[str, Any]) -> Iterator[Row]:
    head = {name: compared[name] for name in _HEAD}
    for item in compared["items"]:
        yield {**head, **item, **_in_currency(item, compared), "error": ""}
    for refused in compared["refused"]:
        yield {**head, **refused, "error": refused["why"]}


def _contexts(drawn: Mapping[str, Any]) -> Iterator[Row]:
    head, before = {name: drawn[name] for name in _HEAD}, 0
    for item in drawn["items"]:
        passed = [
            f"{cliff['kind']} at {cliff['ctx']}"
            for cliff in drawn["cliffs"]
            if before < cliff["ctx"] <= item["ctx"]
        ]
        cells = {"cliffs": "; ".join(passed), "error": item.get("why", "")}
        yield {**head, **item, **_in_currency(item, drawn), **cells}
        before = item["ctx"]


def _points(found: Mapping[str, Any]) -> Iterator[Row]:
    head = {name: found[name] for name in _HEAD}
    for points in found["by_gpu"].values():
        for point in points:
            cells = {"on_front": point in found["front"], "error": ""}
            yield {**head, **point, **_in_currency(point, found), **cells}
    for refused in found["refused"]:
        yield {**head, **refused, "error": refused["why"]}


def _in_currency(item: Mapping[str, Any], answer: Mapping[str, Any]) -> Row:
    """Amounts in the asked currency; in US dollars where none was."""
    currency = answer["exchange"]["currency"] if "exchange" in answer else _USD.upper()
    of_usd = [name for name in item if _USD in name.split("_")]
    amounts = {name.replace(_USD, "currency"): item[name.replace(_USD, currency.lower())] for name in of_usd}
    return {"currency": currency, **amounts}
