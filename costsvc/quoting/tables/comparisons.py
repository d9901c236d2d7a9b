"""A comparison as a table: the configurations in their order, then those that were refused, and why."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from costsvc.quoting.tables.table import Column, Row, Table, numbers, texts

_HEAD: Final = ("as_of", "catalog_revision", "engine_version")
COLUMNS: Final = (
    Column("as_of", "day"),
    *numbers("catalog_revision"),
    *texts("engine_version", "gpu", "weights", "kv", "mode"),
    *numbers("gpus", "tp", "pp", "dp", "ep", "concurrency"),
    *texts("bound"),
    Column("keeps_objectives", "flag"),
    *numbers("tpot_ms", "ttft_ms", "output_tok_s_per_user", "usd_per_gpu_hour", "request_usd"),
    *numbers("input_usd_per_mtok", "cached_input_usd_per_mtok", "output_usd_per_mtok"),
    *numbers("blended_usd_per_mtok", "fleet_gpus", "usd_per_month"),
    *texts("error"),
)


def comparison_table(compared: Mapping[str, Any]) -> Table:
    """The table of what `/compare` answers."""
    return Table(name="configurations", row_name="configuration", columns=COLUMNS, rows=_rows(compared))


def _rows(compared: Mapping[str, Any]) -> Iterator[Row]:
    head = {name: compared[name] for name in _HEAD}
    for item in compared["items"]:
        yield {**head, **item, "error": ""}
    for refused in compared["refused"]:
        yield {**head, **refused, "error": refused["why"]}
