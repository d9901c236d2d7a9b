"""Lists of the catalog as tables: the day and the revision in every row, then fixed columns."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from costsvc.quoting.tables.table import Column, Row, Table, numbers, texts

# Rates that a card may have; a card without one has a blank there.
RATES: Final = ("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp6", "fp4")

_HEAD: Final = (Column("as_of", "day"), *numbers("catalog_revision"))
_AND: Final = "; "

MODELS: Final = (
    *_HEAD,
    *texts("id", "name", "family", "hf_id"),
    Column("released", "day"),
    *texts("licence"),
    *numbers("published_parameters", "layers", "hidden_size", "max_context_tokens"),
    *texts("released_weights", "aliases"),
)
GPUS: Final = (
    *_HEAD,
    *texts("id", "name", "vendor", "generation"),
    Column("released", "day"),
    *numbers("memory_bytes", "usable_memory_bytes", "memory_bytes_per_s"),
    *numbers(*(f"dense_{rate}_flops_per_s" for rate in RATES)),
    *numbers("link_bytes_per_s", "link_domain_gpus", "pcie_bytes_per_s", "power_w"),
    *texts("spec_check"),
    *numbers("reference_usd_per_gpu_hour"),
    *texts("aliases"),
)
PRICES: Final = (
    *_HEAD,
    *texts("id", "provider", "gpu", "market", "region", "instance_type"),
    *numbers("gpus_per_instance"),
    *texts("basis"),
    *numbers("usd_per_gpu_hour"),
    Column("since", "day"),
    *texts("source_id"),
    Column("in_reference", "flag"),
    *texts("excluded_reason"),
    Column("private", "flag"),
)
API_PRICES: Final = (
    *_HEAD,
    *texts("id", "provider", "provider_model_id", "model"),
    Column("observed", "day"),
    *numbers(
        "input_usd_per_mtok", "cached_input_usd_per_mtok", "output_usd_per_mtok", "context_limit_tokens"
    ),
    *texts("source_id"),
)
PROFILES: Final = (
    *_HEAD,
    *texts("id", "name", "description"),
    *numbers("input_tokens", "output_tokens", "requests_per_session", "rps"),
    *texts("aliases"),
)
FX_RATES: Final = (
    *_HEAD,
    *texts("id"),
    *numbers("units_per_usd"),
    Column("since", "day"),
    *texts("source_id"),
)


def listing(name: str, columns: Sequence[Column], listed: Mapping[str, Any]) -> Table:
    """The table of a list as the service answers it. `name` is its plural, such as `models`."""
    return Table(name=name, row_name=name.removesuffix("s"), columns=columns, rows=_rows(listed))


def _rows(listed: Mapping[str, Any]) -> Iterator[Row]:
    head = {"as_of": listed["as_of"], "catalog_revision": listed["catalog_revision"]}
    for item in listed["items"]:
        yield {**head, **dict(_cells(item))}


def _cells(item: Any) -> Iterator[tuple[str, Any]]:
    for name in type(item).__dataclass_fields__:
        value = getattr(item, name)
        if isinstance(value, tuple):
            yield name, _AND.join(value)
        elif isinstance(value, Mapping):
            yield from ((f"dense_{rate}_flops_per_s", flops) for rate, flops in value.items())
        else:
            yield name, value
