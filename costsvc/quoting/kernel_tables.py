"""Tables of measured kernels, read and fitted by generation: the priors of a calibration."""

import csv
import gzip
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from costsvc.db.entries import GpuEntry
from costsvc.db.snapshot import Catalog
from costsvc.engine.kernels import (
    LEAST_ROWS,
    KernelFit,
    Vector,
    fit_all_reduce,
    fit_decode_attention,
    fit_matrices,
    fit_prefill_attention,
)
from costsvc.errors import Ambiguous, NotInCatalog

Key = tuple[str, str, str]
Priors = dict[Key, tuple[float, float, int]]

LEAST_MESSAGE_BYTES = 65_536
LEAST_PROMPT_TOKENS = 256
LARGEST_NODE = 8
DTYPES = {
    "bfloat16": "bf16",
    "fp8": "fp8",
    "fp8_block": "fp8_block",
    "nvfp4": "nvfp4",
    "int8": "int8",
}
_MOE = re.compile(r"top(\d+)/(\d+)")


def kernel_priors(catalog: Catalog, folder: Path) -> Priors:
    """(judgement, generation, dtype) to value, scatter and rows; empty where there are no tables."""
    priors: Priors = {}
    priors |= _matrix_priors(catalog, folder / "kernel_gemm_util.csv.gz", "gemm", _gemm_tokens)
    priors |= _matrix_priors(catalog, folder / "kernel_moe_util.csv.gz", "moe", _moe_tokens)
    priors |= _decode_priors(catalog, folder / "kernel_attn_decode_util.csv.gz")
    priors |= _prefill_priors(catalog, folder / "kernel_attn_prefill_util.csv.gz")
    priors |= _link_priors(catalog, folder / "kernel_collectives.csv.gz")
    return priors


def _rows(catalog: Catalog, path: Path) -> Iterator[tuple[GpuEntry, Mapping[str, str]]]:
    """Rows of accelerators that the catalog holds."""
    if not path.is_file():
        return
    known: dict[str, GpuEntry | None] = {}
    with gzip.open(path, "rt", newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            name = row["gpu"]
            if name not in known:
                known[name] = _gpu(catalog, name)
            gpu = known[name]
            if gpu is not None:
                yield gpu, row


def _gpu(catalog: Catalog, name: str) -> GpuEntry | None:
    """The accelerator of a table's name; variants in memory size share their kernels."""
    try:
        return catalog.gpu(name)
    except Ambiguous as error:
        return catalog.gpu(error.candidates[0])
    except NotInCatalog:
        return None


def _gemm_tokens(row: Mapping[str, str]) -> float:
    return float(row["m"])


def _moe_tokens(row: Mapping[str, str]) -> float:
    """Tokens that each touched expert sees."""
    match = _MOE.search(row["moe"])
    if match is None or row.get("ep") not in ("1", "1.0"):
        return np.nan
    chosen, experts = int(match.group(1)), int(match.group(2))
    tokens = float(row["m"])
    touched = -experts * np.expm1(tokens * np.log1p(-chosen / experts)) if experts > chosen else experts
    return float(tokens * chosen / max(touched, 1.0))


def _matrix_priors(
    catalog: Catalog, path: Path, kind: str, tokens_of: Callable[[Mapping[str, str]], float]
) -> Priors:
    """Shares are times at full peak over the measured time, so the tables' own peaks drop out."""
    mbu_name = "mbu" if kind == "gemm" else "mbu_hit"
    tables: dict[tuple[str, str], list[tuple[float, float, float, float]]] = defaultdict(list)
    for gpu, row in _rows(catalog, path):
        dtype = DTYPES.get(row["dtype"])
        seconds, tokens = float(row["us"]) * 1e-6, tokens_of(row)
        mfu, mbu = float(row["mfu"] or 0), float(row[mbu_name] or 0)
        if dtype and mfu > 0 and mbu > 0 and np.isfinite(tokens):
            tables[gpu.spec.generation, dtype].append((mfu * seconds, mbu * seconds, tokens, seconds))
    priors: Priors = {}
    for (generation, dtype), rows in tables.items():
        if len(rows) < LEAST_ROWS:
            continue
        found = fit_matrices(*_columns(rows))
        names = (f"{kind}_mfu_share", f"{kind}_mbu_share", f"{kind}_half_tokens")
        priors |= _named(found, names, generation, dtype)
    return priors


def _decode_priors(catalog: Catalog, path: Path) -> Priors:
    tables: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for gpu, row in _rows(catalog, path):
        dtype = DTYPES.get(row["kv_dtype"])
        if dtype is None:
            continue
        values = 2.0 * float(row["kvh"]) * float(row["hd"]) * float(row["batch"]) * float(row["ctx"])
        width = catalog.dtype(dtype).spec.value_bytes
        ideal = values * width / gpu.spec.memory_bytes_per_s
        seconds = float(row["us"]) * 1e-6
        if ideal < seconds:
            tables[gpu.spec.generation, dtype].append((ideal, seconds))
    priors: Priors = {}
    for (generation, dtype), rows in tables.items():
        ideal_s, seconds_s = _columns(rows)
        found = fit_decode_attention(ideal_s, seconds_s)
        priors |= _named(found, ("attention_decode_mbu_share", "attention_decode_floor_s"), generation, dtype)
    return priors


def _prefill_priors(catalog: Catalog, path: Path) -> Priors:
    tables: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for gpu, row in _rows(catalog, path):
        tokens = float(row["isl"])
        if DTYPES.get(row["kv"]) == "bf16" and tokens >= LEAST_PROMPT_TOKENS:
            tables[gpu.spec.generation].append((float(row["mfu"]), tokens / 2))
    priors: Priors = {}
    for generation, rows in tables.items():
        share, visible = _columns(rows)
        found = fit_prefill_attention(share, visible)
        names = ("attention_prefill_mfu_share", "attention_prefill_half_tokens")
        priors |= _named(found, names, generation, "")
    return priors


def _link_priors(catalog: Catalog, path: Path) -> Priors:
    """All-reduces of the serving stacks over the scale-up link, inside one node."""
    tables: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for gpu, row in _rows(catalog, path):
        ranks, size = float(row["n_gpus"]), float(row["message_size"])
        inside = gpu.spec.link_domain_gpus >= ranks and ranks <= LARGEST_NODE
        if row["op"] == "all_reduce" and row["lib"] != "nccl" and inside and size >= LEAST_MESSAGE_BYTES:
            ideal = 2 * (ranks - 1) / ranks * size / gpu.spec.link_bytes_per_s
            tables[gpu.spec.generation].append((ideal, float(row["us_min"]) * 1e-6))
    priors: Priors = {}
    for generation, rows in tables.items():
        ideal_s, seconds_s = _columns(rows)
        if len(rows) >= LEAST_ROWS:
            found = fit_all_reduce(ideal_s, seconds_s)
            priors |= _named(found, ("link_efficiency_share", "link_latency_s"), generation, "")
    return priors


def _columns(rows: Sequence[tuple[float, ...]]) -> tuple[Vector, ...]:
    return tuple(np.asarray(rows, dtype=np.float64).T)


def _named(found: KernelFit, names: tuple[str, ...], generation: str, dtype: str) -> Priors:
    return {
        (name, generation, dtype): (value, found.scatter_ratio, found.rows)
        for name, value in zip(names, found.values, strict=False)
    }
