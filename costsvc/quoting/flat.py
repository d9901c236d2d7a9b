"""A quote as one row: fixed columns in a fixed order, units in their names."""

from collections.abc import Iterable, Mapping
from functools import lru_cache, reduce
from operator import getitem
from typing import Any, Final

from costsvc.quoting.tables.cells import Kind, cell
from costsvc.quoting.tables.table import Column, Row, Table

__all__ = ["COLUMNS", "ERROR", "QUOTE_COLUMNS", "cell", "quote_row", "quote_table", "value_at"]

# Column → where it stands in the answer, and what it holds. Their order is a promise: new ones come last.
_COLUMNS: Final[Mapping[str, tuple[str, Kind]]] = {
    "as_of": ("as_of", "day"),
    "catalog_revision": ("catalog_revision", "number"),
    "engine_version": ("engine_version", "text"),
    "model": ("request.model", "text"),
    "gpu": ("request.gpu", "text"),
    "ctx_tokens": ("request.ctx", "number"),
    "input_tokens": ("request.input_tokens", "number"),
    "cached_input_tokens": ("request.cached_input_tokens", "number"),
    "output_tokens": ("request.output_tokens", "number"),
    "gpus": ("deployment.gpus", "number"),
    "tp": ("deployment.tp", "number"),
    "pp": ("deployment.pp", "number"),
    "dp": ("deployment.dp", "number"),
    "ep": ("deployment.ep", "number"),
    "weights": ("deployment.weights", "text"),
    "kv": ("deployment.kv", "text"),
    "stack": ("deployment.stack", "text"),
    "input_usd_per_mtok": ("prices.input.usd_per_mtok", "number"),
    "input_low_usd_per_mtok": ("prices.input.low", "number"),
    "input_high_usd_per_mtok": ("prices.input.high", "number"),
    "cached_input_usd_per_mtok": ("prices.cached_input.usd_per_mtok", "number"),
    "cached_input_low_usd_per_mtok": ("prices.cached_input.low", "number"),
    "cached_input_high_usd_per_mtok": ("prices.cached_input.high", "number"),
    "output_usd_per_mtok": ("prices.output.usd_per_mtok", "number"),
    "output_low_usd_per_mtok": ("prices.output.low", "number"),
    "output_high_usd_per_mtok": ("prices.output.high", "number"),
    "blended_usd_per_mtok": ("prices.blended.usd_per_mtok", "number"),
    "blended_low_usd_per_mtok": ("prices.blended.low", "number"),
    "blended_high_usd_per_mtok": ("prices.blended.high", "number"),
    "currency": ("prices.currency", "text"),
    "input_currency_per_mtok": ("prices.input.{currency}_per_mtok", "number"),
    "cached_input_currency_per_mtok": ("prices.cached_input.{currency}_per_mtok", "number"),
    "output_currency_per_mtok": ("prices.output.{currency}_per_mtok", "number"),
    "blended_currency_per_mtok": ("prices.blended.{currency}_per_mtok", "number"),
    "request_usd": ("cost.request_usd", "number"),
    "usd_per_gpu_hour": ("cost.gpu_price.usd_per_gpu_hour", "number"),
    "replica_usd_per_hour": ("cost.replica_usd_per_hour", "number"),
    "utilization": ("cost.utilization", "number"),
    "margin": ("cost.margin", "number"),
    "concurrency": ("concurrency.limit", "number"),
    "bound": ("concurrency.bound", "text"),
    "tpot_ms": ("latency.tpot_ms", "number"),
    "ttft_ms": ("latency.ttft_ms", "number"),
    "output_tok_s": ("throughput.output_tok_s", "number"),
    "extrapolated": ("uncertainty.extrapolated", "flag"),
}
# What was added after the reason of a row without a quote.
_LATER: Final[Mapping[str, tuple[str, Kind]]] = {
    "input_tok_s": ("throughput.input_tok_s", "number"),
    "requests_per_s": ("throughput.requests_per_s", "number"),
    "output_tok_s_per_user": ("throughput.output_tok_s_per_user", "number"),
    "mode": ("deployment.mode", "text"),
    "gpu_price_basis": ("cost.gpu_price.basis", "text"),
    **{
        f"{kind}_{bound}_currency_per_mtok": (f"prices.{kind}.{bound}{{in_currency}}", "number")
        for kind in ("input", "cached_input", "output", "blended")
        for bound in ("low", "high")
    },
    "request_currency": ("cost.request_{currency}", "number"),
    "currency_per_gpu_hour": ("cost.gpu_price.{currency}_per_gpu_hour", "number"),
    "replica_currency_per_hour": ("cost.replica_{currency}_per_hour", "number"),
    "units_per_usd": ("prices.exchange.units_per_usd", "number"),
}
_ALL: Final = {**_COLUMNS, **_LATER}
_MONEY: Final = tuple(
    name for name, (path, _) in _ALL.items() if path.partition(".")[0] in ("as_of", "cost", "prices")
)
_WORK: Final = tuple(name for name in _ALL if name not in _MONEY)
ERROR: Final = "error"
_KEPT_CURRENCIES: Final = 256
_USD: Final = "usd"
QUOTE_COLUMNS: Final = (
    *(Column(name, kind) for name, (_, kind) in _COLUMNS.items()),
    Column(ERROR),
    *(Column(name, kind) for name, (_, kind) in _LATER.items()),
)
COLUMNS: Final = tuple(column.name for column in QUOTE_COLUMNS)


def quote_row(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The row of an answer."""
    return _taken(answer, tuple(_ALL)) | {ERROR: ""}


def money_row(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of money alone, of an answer that need have no more."""
    return _taken(answer, _MONEY)


def work_row(answer: Mapping[str, Any]) -> dict[str, Any]:
    """All the other columns."""
    return _taken(answer, _WORK) | {ERROR: ""}


def _taken(answer: Mapping[str, Any], columns: tuple[str, ...]) -> dict[str, Any]:
    currency = answer["prices"]["currency"].lower() if "prices" in answer else ""
    return {name: _value(answer, name, path) for name, path in _paths(columns, currency)}


def _value(answer: Mapping[str, Any], name: str, path: list[str]) -> Any:
    """A column's value. A quote may be stored since before a later column was added, and then leaves it blank."""
    try:
        return reduce(getitem, path, answer)
    except KeyError:
        if name in _LATER:
            return None
        raise


@lru_cache(maxsize=_KEPT_CURRENCIES)
def _paths(columns: tuple[str, ...], currency: str) -> tuple[tuple[str, list[str]], ...]:
    """Columns with the names that lead to them in an answer."""
    words = {"currency": currency, "in_currency": "" if currency == _USD else f"_{currency}_per_mtok"}
    return tuple((name, _ALL[name][0].format(**words).split(".")) for name in columns)


def quote_table(rows: Iterable[Row], *, before: tuple[Column, ...] = ()) -> Table:
    """Quotes, a row each; `before` are columns ahead of the quote's own."""
    return Table(name="quotes", row_name="quote", columns=(*before, *QUOTE_COLUMNS), rows=rows)


def value_at(answer: Mapping[str, Any], path: str) -> Any:
    """What stands at a dotted path.

    Raises
    ------
    KeyError
        Nothing does.
    """
    node: Any = answer
    for name in path.split("."):
        if not isinstance(node, Mapping):
            raise KeyError(path)
        node = node[name]
    return node
