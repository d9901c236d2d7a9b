"""Published pairs of a cold and a warm prefix cache against the engine: how far warm over cold is off."""

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from costsvc.db.snapshot import Catalog
from costsvc.engine.calibration import Vector
from costsvc.errors import CostsvcError, InvalidRequest
from costsvc.quoting.measured import LeftOut
from costsvc.quoting.points import number_of, required_number, text_of
from costsvc.quoting.predict import Point, read_point, serve_point

PAIRS = "prefix_cache.csv"
_ENGINE = re.compile(r"([A-Za-z][\w-]*)\s+v?([\d.]+)?")
_RATES = re.compile(r"([\d.]+) req/s(?: cold vs ([\d.]+) req/s warm)?")
_IN_FLIGHT = re.compile(r"(\d+) concurrent")
_BURST = re.compile(r"\ball\b.*\bat once\b")
_SINGLE = re.compile(r"\bsingle (?:request|stream)\b")
_REPLICAS = re.compile(r"over (\d+) replicas")


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixPair:
    """One workload without and with its prefixes cached; what was measured is warm over cold. NaN: not. [1]"""

    id: str
    cold: Point
    warm: Point
    rate_ratio: float
    ttft_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PairErrors:
    """Predicted over measured of the two ratios, pair by pair. [1]"""

    rate: Vector
    ttft: Vector


def read_pairs(catalog: Catalog, path: Path) -> tuple[list[PrefixPair], list[LeftOut]]:
    """Pairs of a table whose hit rate and load are known and whose model and accelerator the catalog holds."""
    kept: list[PrefixPair] = []
    left: list[LeftOut] = []
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            id = f"{row['source']} {row['load']}"
            try:
                kept.append(_pair(catalog, row, id))
            except CostsvcError as error:
                left.append(LeftOut(id=id, reason=error.message))
    return kept, left


def pair_errors(catalog: Catalog, pairs: Iterable[PrefixPair]) -> PairErrors:
    """Run both halves of each pair.

    All prompts of a burst wait for half of it on average, so its TTFT goes with one over its rate.
    """
    rates, firsts = [], []
    for pair in pairs:
        cold, warm = serve_point(catalog, pair.cold), serve_point(catalog, pair.warm)
        rate = float((warm.output_tokens_per_s / cold.output_tokens_per_s)[0, 0])
        burst = pair.cold.offered.mode == "offline-maxthroughput"
        first = 1.0 / rate if burst else float((warm.ttft_s / cold.ttft_s)[0, 0])
        rates.append(rate / pair.rate_ratio)
        firsts.append(first / pair.ttft_ratio)
    return PairErrors(rate=np.asarray(rates), ttft=np.asarray(firsts))


def _pair(catalog: Catalog, row: Mapping[str, str], id: str) -> PrefixPair:
    prompt, cached = required_number(row, "isl"), _cached_tokens(row)
    match = _ENGINE.match(row["engine"])
    engine, version = match.groups() if match else (row["engine"], None)
    common = {
        "model": row["model"],
        "gpu": row["gpu"],
        "n_gpus": row["n_gpus"],
        "engine": engine,
        "engine_version": version or "",
        "isl": row["isl"],
        "osl": row["osl"].lstrip("~"),
    }
    cold_load, warm_load = _loads(row)
    warm = read_point(catalog, {**common, **warm_load, "cached_tokens": str(min(cached, prompt - 1.0))})
    return PrefixPair(
        id=id,
        cold=read_point(catalog, {**common, **cold_load}),
        warm=replace(
            warm, traffic=replace(warm.traffic, shared_cached_tokens=warm.traffic.cached_input_tokens)
        ),
        rate_ratio=_ratio(row, "tok_s_warm", "tok_s_cold"),
        ttft_ratio=_ratio(row, "ttft_warm_ms", "ttft_cold_ms"),
    )


def _cached_tokens(row: Mapping[str, str]) -> float:
    """Tokens of a warm prompt that the cache holds.

    Raises
    ------
    InvalidRequest
        Neither they nor the hit rate are published.
    """
    cached = number_of(row, "cached_tokens")
    rate = (text_of(row, "hit_rate") or "").lstrip("~")
    if cached is not None:
        return cached
    if not rate:
        raise InvalidRequest("The hit rate is not published.", field="hit_rate")
    share = number_of({"hit_rate": rate}, "hit_rate")
    return (share or 0.0) * required_number(row, "isl")


def _loads(row: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The load of each half, from the words of the table.

    Raises
    ------
    InvalidRequest
        It is none that can be run again.
    """
    load = row["load"]
    if match := _RATES.search(load):
        cold, warm = match.groups()
        return {"mode": "server", "rps": cold}, {"mode": "server", "rps": warm or cold}
    if _BURST.search(load):
        return {"mode": "offline-maxthroughput"}, {"mode": "offline-maxthroughput"}
    if _SINGLE.search(load):
        return {"concurrency": "1"}, {"concurrency": "1"}
    if match := _IN_FLIGHT.search(load):
        replicas = _REPLICAS.search(load)
        each = float(match.group(1)) / float(replicas.group(1) if replicas else 1)
        return {"concurrency": f"{each:g}"}, {"concurrency": f"{each:g}"}
    raise InvalidRequest("Its load has no rate and no number in flight.", field="load")


def _ratio(row: Mapping[str, str], over: str, under: str) -> float:
    warm, cold = number_of(row, over), number_of(row, under)
    return warm / cold if warm and cold else np.nan
