"""A quote as one row: fixed columns, units in their names; and how a cell of CSV is written."""

from collections.abc import Mapping
from typing import Any, Final

_DECIMALS = 6

# Column → where it stands in the answer.
COLUMNS: Final[Mapping[str, str]] = {
    "as_of": "as_of",
    "catalog_revision": "catalog_revision",
    "engine_version": "engine_version",
    "model": "request.model",
    "gpu": "request.gpu",
    "ctx_tokens": "request.ctx",
    "input_tokens": "request.input_tokens",
    "cached_input_tokens": "request.cached_input_tokens",
    "output_tokens": "request.output_tokens",
    "gpus": "deployment.gpus",
    "tp": "deployment.tp",
    "pp": "deployment.pp",
    "dp": "deployment.dp",
    "ep": "deployment.ep",
    "weights": "deployment.weights",
    "kv": "deployment.kv",
    "stack": "deployment.stack",
    "currency": "prices.currency",
    "input_per_mtok": "prices.input.usd_per_mtok",
    "input_per_mtok_low": "prices.input.low",
    "input_per_mtok_high": "prices.input.high",
    "cached_input_per_mtok": "prices.cached_input.usd_per_mtok",
    "cached_input_per_mtok_low": "prices.cached_input.low",
    "cached_input_per_mtok_high": "prices.cached_input.high",
    "output_per_mtok": "prices.output.usd_per_mtok",
    "output_per_mtok_low": "prices.output.low",
    "output_per_mtok_high": "prices.output.high",
    "blended_per_mtok": "prices.blended.usd_per_mtok",
    "request_usd": "cost.request_usd",
    "usd_per_gpu_hour": "cost.gpu_price.usd_per_gpu_hour",
    "replica_usd_per_hour": "cost.replica_usd_per_hour",
    "utilization": "cost.utilization",
    "concurrency": "concurrency.limit",
    "bound": "concurrency.bound",
    "tpot_ms": "latency.tpot_ms",
    "ttft_ms": "latency.ttft_ms",
    "output_tok_s": "throughput.output_tok_s",
    "extrapolated": "uncertainty.extrapolated",
}


def quote_row(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The row of an answer."""
    return {column: value_at(answer, path) for column, path in COLUMNS.items()}


def value_at(answer: Mapping[str, Any], path: str) -> Any:
    """What stands at a dotted path."""
    node: Any = answer
    for name in path.split("."):
        node = node[name]
    return node


def cell(value: object) -> str:
    """A value as CSV holds it: blank for None, plain decimals, whole numbers without a point.

    Examples
    --------
    >>> [cell(value) for value in (None, True, 512.0, 1e-5, "2.50")]
    ['', 'true', '512', '0.00001', '2.50']
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return format(value, f".{_DECIMALS}f").rstrip("0").rstrip(".")
    return str(value)
