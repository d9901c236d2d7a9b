"""Every number of the engine's inputs and results names its unit: the glossary that new names must use."""

import importlib
import pkgutil
from dataclasses import fields, is_dataclass
from types import ModuleType
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

import costsvc.engine

# What a name may end in. `value_bytes` is bytes per value; `_ratio` may exceed 1, `_share` may not.
UNITS = (
    "bytes",
    "bytes_per_s",
    "flops_per_s",
    "requests_per_s",
    "tokens_per_s",
    "usd",
    "usd_per_s",
    "s",
    "gpu_s",
    "w",
    "share",
    "shares",
    "ratio",
    "tokens",
    "size",
    "dim",
    "window",
    "values",
    "parameters",
    "correlation",
    "cv",
    "exponent",
)
# Counts are units of their own.
COUNTS = {
    "batch",
    "blocks",
    "calls",
    "concurrency",
    "copies",
    "count",
    "documents",
    "dp",
    "ep",
    "experts",
    "experts_per_token",
    "gpus",
    "groups",
    "heads",
    "layers",
    "points",
    "pp",
    "prompts",
    "replicas",
    "requests",
    "rows",
    "rps",
    "sequences",
    "sigmas",
    "steps",
    "tiers",
    "tp",
    "turns",
    "vectors",
}
# Arrays of tokens whose class says so once in its docstring, and vocabulary of the formulas.
TOKENS_BY_CLASS = {
    "Batch": "[token]",
    "Lengths": "Tokens of requests",
    "TokenPrices": "[accelerator-second/token]",
    "LayerParameters": "[parameters]",
}
# Which of several is not a quantity; tokens, as the docstring of its class says.
PLAIN = {"bound", "mixed_prefill"}
# Machinery, not inputs and results: rows of a fit, and indices into recorded traces.
MACHINERY = {"block_table", "calibration", "dominance", "kernels", "moments", "trace"}


def modules() -> list[ModuleType]:
    found = pkgutil.walk_packages(costsvc.engine.__path__, "costsvc.engine.")
    names = [module.name for module in found if module.name.rsplit(".", 1)[-1] not in MACHINERY]
    return [importlib.import_module(name) for name in names]


def numeric(annotation: Any) -> bool:
    """Whether a field holds a number or an array of numbers."""
    options = get_args(annotation)
    if annotation in (int, float) or getattr(annotation, "__origin__", None) is np.ndarray:
        return True
    if hasattr(annotation, "__origin__"):
        return False
    return any(numeric(option) for option in options)


RECORDS = {
    record.__name__: record
    for module in modules()
    for record in vars(module).values()
    if isinstance(record, type) and is_dataclass(record) and record.__module__ == module.__name__
}


def nameless(record: type) -> list[str]:
    hints = get_type_hints(record)
    numbers = [field.name for field in fields(record) if numeric(hints[field.name])]
    return [name for name in numbers if not names_its_unit(name)]


def names_its_unit(name: str) -> bool:
    last = name.rsplit("_", 1)[-1]
    return (
        last in COUNTS
        or last in UNITS
        or name in COUNTS | PLAIN
        or any(name.endswith(f"_{unit}") for unit in UNITS)
    )


def test_specs_and_results_are_found() -> None:
    assert {
        "GpuSpec",
        "Traffic",
        "Calibration",
        "SteadyState",
        "Loop",
        "MemoryBudget",
        "FullAttention",
    } <= set(RECORDS)


@pytest.mark.parametrize("name", RECORDS)
def test_every_number_names_its_unit(name: str) -> None:
    record = RECORDS[name]
    if name in TOKENS_BY_CLASS:
        assert TOKENS_BY_CLASS[name] in (record.__doc__ or "")
        return
    assert nameless(record) == []


def test_a_number_without_a_unit_is_found() -> None:
    assert [
        name for name in ("speed", "memory", "memory_bytes", "tpot_ms", "heads") if not names_its_unit(name)
    ] == [
        "speed",
        "memory",
        "tpot_ms",
    ]
