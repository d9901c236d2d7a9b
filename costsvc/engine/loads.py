"""How a deployment answers the loads that benchmarks offer: closed loops, open loops, batches, floods.

Arrays are (1, points): one layout under many loads of one mode.
"""

from dataclasses import dataclass, fields
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from costsvc.engine.attention import Floats
from costsvc.engine.loop import (
    Loop,
    LoopPlan,
    plan_loop,
    prompt_s,
    run_loop,
    step_token_limit,
    ttft_unloaded_s,
)
from costsvc.engine.memory import Lengths, memory_budget
from costsvc.engine.replica import Replica
from costsvc.engine.rows import concurrency_limits
from costsvc.engine.search import Array
from costsvc.engine.serving import BOUNDS, GIVEN

LoadMode: TypeAlias = Literal["static", "continuous", "server", "offline-maxthroughput"]
LOOP_ROUNDS: Final = 2
POOL_ROUNDS: Final = 6
ROOT_ROUNDS: Final = 9
TINY: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """Loads: requests held in flight, or arriving at a rate, or all there is.

    `concurrency` infinite is as many as fit of a flood, `rps` infinite a flood, both finite arrivals of which no
    more are in flight; `max_batch` caps the scheduler where finite; `prefill_ratio` is how much prefill pool stands
    beside a decode replica, infinite as much as it needs. [sequences], [requests/s], [1]
    """

    mode: LoadMode
    concurrency: Array
    rps: Array
    max_batch: Array
    prefill_ratio: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What each load gets from the whole deployment; latencies are means as benchmarks print them.

    All is NaN where one sequence does not fit. TTFT of a flood is infinite; of arrivals beyond what can be served,
    whose queue grows as long as they come, it holds half a stay of waiting. `bound` indexes `BOUNDS`.
    """

    output_tokens_per_s: Array
    ttft_s: Array
    tpot_s: Array
    sequences: Array
    bound: NDArray[np.int64]


def serve(replica: Replica, lengths: Lengths, offered: Offered) -> Served:
    """Run one layout under loads."""
    limits = {
        name: np.asarray(limit, dtype=np.float64)
        for name, limit in concurrency_limits(replica, lengths, memory_budget(replica)).items()
    }
    shape = np.broadcast_shapes(offered.concurrency.shape, *(limit.shape for limit in limits.values()))
    wide = {name: np.broadcast_to(limit, shape) for name, limit in limits.items()}
    scheduler = np.where(np.isfinite(offered.max_batch), offered.max_batch, wide["max_num_seqs"])
    wide["max_num_seqs"] = np.where(np.isnan(wide["memory"]), np.nan, scheduler)
    if offered.mode == "static":
        return _static(replica, lengths, offered, wide)
    if offered.mode == "server" and bool(np.isfinite(offered.rps).all()):
        free = _open_loop(replica, lengths, offered, wide)
        if not np.isfinite(offered.concurrency).any():
            return free
        return _fewer_in_flight(free, _closed_loop(replica, lengths, offered, wide), offered)
    return _closed_loop(replica, lengths, offered, wide)


def _closed_loop(replica: Replica, lengths: Lengths, offered: Offered, limits: dict[str, Array]) -> Served:
    """Users who each send the next request at once; those beyond the limit wait outside.

    An offline flood of unstated size has `flood_tokens`, and `flood_least_sequences` at least. Of those in the
    engine some are in prefill: by Little's law :math:`B = N D / (D + TTFT)` decode, with D the time of the output;
    an offline run is long, so the opening burst is no part of that TTFT. A prefill pool that passes on R prompts/s
    lets at most :math:`B = R D` decode, and the others wait for it.
    """
    ceiling, bound = _tightest({name: limits[name] for name in ("memory", "max_num_seqs")})
    flood = ~np.isfinite(offered.concurrency)
    ends = offered.mode == "offline-maxthroughput"
    offering = np.where(flood & ends, _flood_requests(replica, lengths), offered.concurrency)
    inside = np.minimum(offering, ceiling)
    tokens = limits.get("step_tokens", np.full_like(inside, np.inf))
    running = np.minimum(inside, tokens)
    plan, first = plan_loop(replica, lengths, 1.0), FirstToken(replica, lengths)
    loop = plan.at(running)
    pooled = bool(np.isfinite(offered.prefill_ratio).any())
    for _ in range(POOL_ROUNDS if pooled else 0 if flood.all() else LOOP_ROUNDS):
        decode_s = loop.step_s * lengths.output
        first_s = first.mean_s(loop, np.ones_like(inside) if ends else inside)
        running = np.minimum(np.where(flood, inside, inside * decode_s / (decode_s + first_s)), tokens)
        running = np.minimum(running, _passed_on(loop, offered) * decode_s) if pooled else running
        loop = plan.at(running)
    rate = running / (loop.step_s * lengths.output)
    if ends:
        rate = np.where(flood, rate * _full_share(plan, loop, offering / inside), rate)
    waiting = np.where(flood, np.inf, np.maximum(offered.concurrency - inside, 0.0))
    first_s = first.mean_s(loop, inside)
    if pooled:
        first_s = np.maximum(first_s, inside / rate - loop.step_s * lengths.output)
    by_tokens = np.where(running >= tokens, BOUNDS.index("step_tokens"), bound)
    return Served(
        output_tokens_per_s=rate * lengths.output,
        ttft_s=first_s + waiting / rate,
        tpot_s=loop.step_s,
        sequences=inside,
        bound=np.where(offering <= ceiling, GIVEN, by_tokens),
    )


def _flood_requests(replica: Replica, lengths: Lengths) -> Array:
    """Requests that a benchmark queues at once where it does not say how many. [requests]"""
    tokens, least = replica.calibration.flood_tokens, replica.calibration.flood_least_sequences
    return np.maximum(tokens / (lengths.prompt + lengths.output), least)


def _full_share(plan: LoopPlan, loop: Loop, waves: Array) -> Array:
    r"""Steady rate that is left of a flood of w waves of alike requests, :math:`w / (w + \tau)`. [1]

    The last wave is part full, and a step's share a that no sequence shortens is lost on its empty slots:
    half of it where nothing says how full, none where a single wave holds all, :math:`\tau = a/2 \min(w - 1, 1)`.
    """
    fixed_share = plan.at(np.full_like(waves, TINY)).step_s / loop.step_s
    tail = fixed_share / 2.0 * np.minimum(waves - 1.0, 1.0)
    return np.asarray(waves / (waves + tail))


def _passed_on(loop: Loop, offered: Offered) -> Array:
    """Prompts that the prefill pool finishes for each decode replica. [requests/s]"""
    return np.asarray(offered.prefill_ratio / np.maximum(loop.prefill_s, np.finfo(float).tiny))


def _fewer_in_flight(free: Served, closed: Served, offered: Offered) -> Served:
    """Arrivals, or the closed loop of those that may be in flight where that is slower."""
    less = np.isfinite(offered.concurrency) & (closed.output_tokens_per_s <= free.output_tokens_per_s)
    names = [one.name for one in fields(Served)]
    return Served(**{name: np.where(less, getattr(closed, name), getattr(free, name)) for name in names})


class FirstToken:
    """Time to first token as benchmarks average it over a closed loop, its opening burst included.

    A floor of the stack, the own prompt, the steps that pass before a token is out, and a share of the prompts
    of the whole loop: they start together, fill steps, and stay clumped where lengths are alike. With pools the
    own prompt, its transfer and the first decode step: what waits before a prefill pool follows from its rate.
    """

    def __init__(self, replica: Replica, lengths: Lengths) -> None:
        calibration = replica.calibration
        self._steps: Floats = calibration.ttft_steps_ratio
        own_s: Floats = prompt_s(replica, lengths, lengths.uncached)
        full_s = prompt_s(replica, lengths, calibration.step_token_budget_tokens)
        packed_s: Floats = lengths.uncached / step_token_limit(replica) * full_s
        if replica.deployments[0].mode == "disaggregated":
            self._steps, packed_s = 0.0, 0.0
            own_s = ttft_unloaded_s(replica, lengths) - calibration.ttft_floor_s
        self._others_s = calibration.ttft_burst_share * packed_s
        self._own_s = calibration.ttft_floor_s + calibration.ttft_prompt_ratio * own_s

    def mean_s(self, loop: Loop, inside: Array) -> Array:
        """The mean with `inside` requests in the engine. [s]"""
        return np.asarray(self._own_s + self._steps * loop.step_s + (inside - 1.0) * self._others_s)


def _open_loop(replica: Replica, lengths: Lengths, offered: Offered, limits: dict[str, Array]) -> Served:
    """Poisson arrivals: the concurrency whose rate is the offered one, or the limit where none is.

    They come one by one, so a prompt meets a queue and no burst.
    """
    ceiling, bound = _tightest(limits)
    plan = plan_loop(replica, lengths, 1.0)
    full = plan.at(ceiling)
    most = ceiling / (full.step_s * lengths.output)
    running, loop = _arriving(plan, offered.rps * lengths.output, ceiling, full)
    rate = np.minimum(offered.rps, most)
    wait_s = _slot_wait_s(rate / most, ceiling, loop.step_s * lengths.output)
    return Served(
        output_tokens_per_s=rate * lengths.output,
        ttft_s=FirstToken(replica, lengths).mean_s(loop, np.ones_like(running)) + wait_s,
        tpot_s=loop.step_s,
        sequences=running,
        bound=np.where(most <= offered.rps, bound, GIVEN),
    )


def _slot_wait_s(load_share: Array, slots: Array, stay_s: Array) -> Array:
    r"""Mean wait for a slot of c, M/D/c: :math:`\frac{S}{2c} \rho^{\sqrt{2(c+1)}-1} / (1-\rho)`, at most half a stay.

    In seconds, like the stay :math:`S`.

    References
    ----------
    .. [1] Sakasegawa, Annals of the Institute of Statistical Mathematics 29, 1977, eq. 2.4; halved for constant stays.
    """
    idle = np.maximum(1.0 - load_share, np.finfo(float).eps)
    waiting = load_share ** (np.sqrt(2.0 * (slots + 1.0)) - 1.0) / (slots * idle)
    return np.asarray(stay_s / 2.0 * np.minimum(waiting, 1.0))


def _arriving(plan: LoopPlan, tokens_per_s: Array, ceiling: Array, full: Loop) -> tuple[Array, Loop]:
    r"""What runs at a rate, :math:`B = \lambda O T(B)`, at most the ceiling: regula falsi, Illinois rule.

    References
    ----------
    .. [1] Dowell and Jarratt, BIT 11, 1971, "A modified regula falsi method".
    """
    low, high = np.zeros_like(ceiling), ceiling
    f_low = -tokens_per_s * plan.at(low + TINY).step_s
    f_high = ceiling - tokens_per_s * full.step_s
    saturated = ~(f_high > 0)
    side, middle, loop = np.zeros_like(ceiling), ceiling, full
    for _ in range(ROOT_ROUNDS):
        rise = np.where(saturated, 1.0, f_high - f_low)
        middle = np.where(saturated, ceiling, high - f_high * (high - low) / rise)
        loop = plan.at(middle)
        f_middle = middle - tokens_per_s * loop.step_s
        above = f_middle > 0
        f_low = np.where(above, np.where(side > 0, f_low / 2, f_low), f_middle)
        f_high = np.where(above, f_middle, np.where(side < 0, f_high / 2, f_high))
        low, high, side = (
            np.where(above, low, middle),
            np.where(above, middle, high),
            np.where(above, 1.0, -1.0),
        )
    return middle, loop


def _static(replica: Replica, lengths: Lengths, offered: Offered, limits: dict[str, Array]) -> Served:
    """A batch that starts and ends together: all prompts first, then the outputs in step.

    The first prompt has its first token when it alone is through; a mean one waits for a share of the others,
    half where they pass one after another, all where an engine takes them in one step. No server stands before
    such a batch, so its first token has no floor.
    """
    memory = limits["memory"]
    batch = np.where(np.isfinite(offered.concurrency), offered.concurrency, memory)
    together = np.minimum(batch, memory)
    loop = run_loop(replica, lengths, together, 1.0)
    prefill_s = prompt_s(replica, lengths, together * lengths.uncached / (replica.dp * replica.pp))
    first_s = np.minimum(prompt_s(replica, lengths, lengths.uncached), prefill_s)
    first_s = first_s + replica.calibration.ttft_wave_share * (prefill_s - first_s)
    token_s = loop.decode_step_s / replica.tokens_per_step
    whole_s = prefill_s + lengths.output * token_s
    return Served(
        output_tokens_per_s=together * lengths.output / whole_s,
        ttft_s=first_s + (batch / together - 1.0) / 2 * whole_s,
        tpot_s=token_s,
        sequences=together,
        bound=np.where(offered.concurrency <= memory, GIVEN, BOUNDS.index("memory")),
    )


def _tightest(limits: dict[str, Array]) -> tuple[Array, NDArray[np.int64]]:
    """The smallest limit of each point, and which it is."""
    names = list(limits)
    stacked = np.stack(list(limits.values()))
    which = np.asarray([BOUNDS.index(name) for name in names])[stacked.argmin(axis=0)]
    return stacked.min(axis=0), which
