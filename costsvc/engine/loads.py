"""How a deployment answers the loads that benchmarks offer: closed loops, open loops, batches, floods."""

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from costsvc.engine.memory import Lengths, memory_budget
from costsvc.engine.replica import Replica
from costsvc.engine.serving import (
    BOUNDS,
    Loop,
    concurrency_limits,
    prompt_batch,
    queue_factor,
    run_loop,
)
from costsvc.engine.step import step_time

LoadMode: TypeAlias = Literal["static", "continuous", "server", "offline-maxthroughput"]
BISECTIONS = 60
OVERLOADED = "rps"


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What a load gets from the whole deployment. Latencies are means; None where they have no meaning."""

    output_tokens_per_s: float
    ttft_s: float | None
    tpot_s: float
    sequences: float
    bound: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """A load: requests held in flight, or arriving at a rate, or all there is.

    `concurrency` None is as many as fit; `max_batch` caps the scheduler. [sequences], [requests/s]
    """

    mode: LoadMode
    concurrency: float | None = None
    rps: float | None = None
    max_batch: float | None = None


def serve(replica: Replica, lengths: Lengths, offered: Offered) -> Served | None:
    """Run one layout under a load; None where one sequence does not fit."""
    limits = {
        name: float(np.ravel(limit)[0])
        for name, limit in concurrency_limits(replica, lengths, memory_budget(replica)).items()
    }
    if np.isnan(limits["memory"]):
        return None
    if offered.max_batch is not None:
        limits["max_num_seqs"] = offered.max_batch
    if offered.mode == "static":
        return _static(replica, lengths, offered, limits)
    if offered.mode == "server" and offered.rps is not None:
        return _open_loop(replica, lengths, offered.rps, limits)
    return _closed_loop(replica, lengths, offered, limits)


def _closed_loop(replica: Replica, lengths: Lengths, offered: Offered, limits: dict[str, float]) -> Served:
    """`concurrency` users who each send the next request at once; those beyond the limit wait."""
    bound = min(limits, key=lambda name: limits[name])
    running = limits[bound]
    waiting = 0.0
    if offered.concurrency is not None:
        waiting = max(offered.concurrency - running, 0.0)
        if offered.concurrency <= running:
            running, bound = offered.concurrency, BOUNDS[-1]
    loop = run_loop(replica, lengths, np.asarray([[running]]), 1.0)
    rate = _requests_per_s(loop, lengths, running)
    return Served(
        output_tokens_per_s=rate * _first(lengths.output),
        ttft_s=_first(loop.ttft_s) + waiting / rate if offered.concurrency is not None else None,
        tpot_s=_first(loop.step_s),
        sequences=running,
        bound=bound,
    )


def _open_loop(replica: Replica, lengths: Lengths, rps: float, limits: dict[str, float]) -> Served:
    """Poisson arrivals: the concurrency whose rate is the offered one, or the limit where none is."""
    bound = min(limits, key=lambda name: limits[name])
    ceiling = limits[bound]
    full = run_loop(replica, lengths, np.asarray([[ceiling]]), 1.0)
    most = _requests_per_s(full, lengths, ceiling)
    if most <= rps:
        return Served(
            output_tokens_per_s=most * _first(lengths.output),
            ttft_s=_first(full.ttft_s),
            tpot_s=_first(full.step_s),
            sequences=ceiling,
            bound=bound,
        )
    low, high = 0.0, ceiling
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        loop = run_loop(replica, lengths, np.asarray([[middle]]), 1.0)
        low, high = (middle, high) if _requests_per_s(loop, lengths, middle) < rps else (low, middle)
    loop = run_loop(replica, lengths, np.asarray([[high]]), 1.0)
    waiting_s = _first(queue_factor(rps / most, ceiling)) * _first(loop.step_s)
    return Served(
        output_tokens_per_s=rps * _first(lengths.output),
        ttft_s=_first(loop.ttft_s) + waiting_s,
        tpot_s=_first(loop.step_s),
        sequences=high,
        bound=OVERLOADED,
    )


def _static(replica: Replica, lengths: Lengths, offered: Offered, limits: dict[str, float]) -> Served:
    """A batch that starts and ends together: all prompts first, then the outputs in step."""
    batch = limits["memory"] if offered.concurrency is None else offered.concurrency
    together = min(batch, limits["memory"])
    loop = run_loop(replica, lengths, np.asarray([[together]]), 1.0)
    ranks = _first(replica.dp * replica.pp)
    tokens = together * _first(lengths.uncached) / ranks
    chunk = min(tokens, replica.calibration.step_token_budget_tokens)
    prefill_s = tokens / chunk * _first(step_time(replica, prompt_batch(replica, lengths, chunk)).total_s)
    decode_s = _first(lengths.output) * _first(loop.decode_step_s)
    waves = batch / together
    return Served(
        output_tokens_per_s=together * _first(lengths.output) / (prefill_s + decode_s),
        ttft_s=prefill_s + (waves - 1) / 2 * (prefill_s + decode_s),
        tpot_s=_first(loop.decode_step_s),
        sequences=together,
        bound="memory" if together < batch or offered.concurrency is None else BOUNDS[-1],
    )


def with_cached(lengths: Lengths, cached_tokens: float) -> Lengths:
    """The same prompts, of which `cached_tokens` are found in the cache. [token]"""
    prompt = _first(lengths.prompt)
    return replace(lengths, uncached=np.asarray([prompt - cached_tokens]), cached=np.asarray([cached_tokens]))


def _requests_per_s(loop: Loop, lengths: Lengths, running: float) -> float:
    return running / (_first(loop.step_s) * _first(lengths.output))


def _first(value: object) -> float:
    return float(np.ravel(np.asarray(value, dtype=np.float64))[0])
