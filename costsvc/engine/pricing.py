r"""From seconds to separate prices: who pays for what is a named choice, and every choice conserves.

All prices here are accelerator-seconds per token of a saturated deployment; money is one factor on them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from costsvc.engine.attention import Floats
from costsvc.engine.loop import prompt_batch, step_token_limit
from costsvc.engine.memory import Lengths, one_sequence_bytes
from costsvc.engine.ray import Ray, along_ray, enough
from costsvc.engine.replica import Replica
from costsvc.engine.search import Array
from costsvc.engine.serving import Solution, SteadyState, solve_together
from costsvc.engine.specs import Objectives
from costsvc.engine.step import step_time
from costsvc.engine.units import SECONDS_PER_HOUR

RENT_STEP = 1e-3
WHOLE = 1e-9


@dataclass(frozen=True, slots=True)
class TokenPrices:
    """What one token of each class costs, and how far the raw attribution missed the request's cost.

    Parameters
    ----------
    uncached, cached, output : float
        [accelerator-second/token]
    residual_share : float
        (sum of price times tokens) / cost - 1 before scaling; the prices returned are scaled to 0. [1]
    """

    uncached: float
    cached: float
    output: float
    residual_share: float


def marginal_prices(replica: Replica, lengths: Lengths, ray: Ray, cost_gpu_s: float) -> TokenPrices:
    r"""Aumann-Shapley prices: the mean marginal cost of a token along the ray from nothing to the request.

    .. math:: p_i = \int_0^1 \partial c / \partial x_i (tI, tK, tO) \, dt

    so that :math:`I p_I + K p_K + O p_O = c(I, K, O)`; see `marginal_rays`. What is paid once a prompt is spread
    over its uncached tokens. The concurrency is solved anew at each point, so a token pays for time and for room.
    Without a cache a cached token costs what an uncached one does.

    References
    ----------
    .. [1] Aumann and Shapley, Values of Non-Atomic Games, 1974, theorem B.
    .. [2] Billera, Heath and Raanan, "Internal telephone billing rates," Operations Research 26(6), 1978.
    .. [3] Mirman and Tauman, Mathematics of Operations Research 7(1), 1982.
    """
    tokens = _tokens(lengths)
    prices = ray.prices(tokens)
    if not replica.deployments[0].kv_cache:
        prices[1] = prices[0]
    return _conserving(prices, tokens, cost_gpu_s)


def marginal_rays(
    replica: Replica, requests: Sequence[Lengths], objectives: Objectives, utilization_share: float
) -> list[Ray]:
    """The cells and slopes of several requests' rays: whatever they need solved is solved at once.

    Parameters
    ----------
    requests : sequence of Lengths
        One point each.
    """
    return rays_beside(replica, requests, objectives, utilization_share)[0]


def rays_beside(
    replica: Replica,
    requests: Sequence[Lengths],
    objectives: Objectives,
    utilization_share: float,
    others: Sequence[Lengths] = (),
    extra_kv_bytes: Sequence[float] = (),
) -> tuple[list[Ray], list[Solution]]:
    """The same rays, and other requests that are solved in the same evaluation.

    Parameters
    ----------
    extra_kv_bytes : sequence of float
        Added to each accelerator's cache memory for each of the others. [B]
    """

    def solved(asked: Sequence[Lengths], extra: Sequence[float]) -> tuple[Solution, list[slice]]:
        return solve_together(
            replica, asked, objectives, utilization_share, [*extra, *[0.0] * (len(asked) - len(extra))]
        )

    searches = [along_ray(_tokens(one)) for one in requests]
    asked = [_lengths_at(one, next(search)) for one, search in zip(requests, searches, strict=True)]
    first, places = solved([*others, *asked], extra_kv_bytes)
    beside = [first.some(slice(None), place) for place in places[: len(others)]]
    answers = [first.least_gpu_s[0, place] for place in places[len(others) :]]
    waiting, rays = list(range(len(requests))), dict[int, Ray]()
    while waiting:
        more: dict[int, Lengths] = {}
        for place, answer in zip(waiting, answers, strict=True):
            try:
                more[place] = _lengths_at(requests[place], searches[place].send(answer))
            except StopIteration as end:
                rays[place] = end.value
        waiting = list(more)
        if waiting:
            finer, places = solved(list(more.values()), ())
            answers = [finer.least_gpu_s[0, place] for place in places]
    return [rays[place] for place in range(len(requests))], beside


def step_prices(
    replica: Replica, lengths: Lengths, state: SteadyState, cost_gpu_s: float, *, pools: bool = False
) -> TokenPrices:
    r"""Who used the machine: the step's time shared between its decode and its prefill tokens.

    The Shapley value of two players, :math:`\phi_d = (T(d) + T(d+p) - T(p)) / 2`; memory is left out. A cached
    token pays the prefill attention over it. With `pools`, each pool's own time is its tokens' bill.
    """
    tokens = _tokens(lengths)
    decode_gpu_s, prefill_gpu_s = (_pool_bills if pools or _is_split(replica) else _shapley_bills)(
        replica, lengths, state
    )
    cached_share = _cached_prefill_share(replica, lengths)
    bills = np.asarray([prefill_gpu_s * (1 - cached_share), prefill_gpu_s * cached_share, decode_gpu_s])
    counted = enough(tokens)
    prices = bills / np.where(counted, tokens, 1.0)
    if not counted[1]:
        prices[1] = _cached_token_gpu_s(replica, lengths, prefill_gpu_s)
    return _conserving(prices, tokens, cost_gpu_s)


def rent_step_bytes(replica: Replica, lengths: Lengths, state: SteadyState) -> float:
    """Cache memory of one more thousandth of the sequences, per accelerator; 0 where memory does not bind. [B]"""
    if state.limits["memory"][0, 0] > state.sequences[0, 0] * (1 + RENT_STEP):
        return 0.0
    step = RENT_STEP * one_sequence_bytes(replica, _first(lengths.resident)) * float(state.sequences[0, 0])
    return step / float(replica.dp[0, 0])


def context_rent_gpus_per_byte(
    replica: Replica, lengths: Lengths, state: SteadyState, more_requests_per_s: float
) -> float:
    r"""Rent of cache memory, :math:`\frac{g}{d} \, \partial \ln X / \partial M`.

    The accelerators whose work is not sold because a byte is taken on each accelerator of one of the `dp`
    ranks; 0 where memory does not bind.

    Parameters
    ----------
    more_requests_per_s : float
        Saturated rate with `rent_step_bytes` of cache memory more. [requests/s]

    Returns
    -------
    float
        [accelerators/B]
    """
    extra_bytes = rent_step_bytes(replica, lengths, state)
    if not extra_bytes:
        return 0.0
    gain = float(np.log(more_requests_per_s / state.requests_per_s[0, 0]))
    return max(gain, 0.0) / extra_bytes * float(replica.gpus[0, 0] / replica.dp[0, 0])


def cached_token_bytes(replica: Replica, lengths: Lengths) -> float:
    """Cache memory of one more token at the request's length, per accelerator. [B/token]"""
    held = _first(lengths.prompt)
    return one_sequence_bytes(replica, held + 1.0) - one_sequence_bytes(replica, held)


def break_even_retention_s(saved_usd: float, load_usd: float, rent_usd_per_s: float) -> float | None:
    """The five-minute rule of the KV cache: longest gap until the next use that keeping a token pays for.

    Parameters
    ----------
    saved_usd : float
        Uncached minus cached price, rent aside. [USD/token]
    load_usd : float
        Bringing the token back from its tier. [USD/token]
    rent_usd_per_s : float
        Keeping it there. [USD/(token s)]

    Returns
    -------
    float or None
        [s]; 0 where it never pays, None where it always does because the rent is zero.

    References
    ----------
    .. [1] Gray and Putzolu, "The 5 minute rule for trading memory for disc accesses," SIGMOD 1987.

    Examples
    --------
    >>> break_even_retention_s(saved_usd=3e-7, load_usd=0.0, rent_usd_per_s=1e-9)
    300.0
    """
    gain = saved_usd - load_usd
    if gain <= 0:
        return 0.0
    return round(gain / rent_usd_per_s, 9) if rent_usd_per_s > 0 else None


def load_multiplier(utilization_share: float) -> float:
    """What unsold capacity adds to every price without an offered rate. [1]"""
    return 1.0 / utilization_share


@dataclass(frozen=True, slots=True)
class Fleet:
    """Whole replicas of each pool for an offered rate; `prefill_replicas` is 0 where one pool does both.

    `multiplier_ratio` is the fleet's cost over what its carried load would cost saturated. [1]
    """

    replicas: int
    prefill_replicas: int
    multiplier_ratio: float
    idle_share: float


def fleet(offered_rps: float, replica_rps: float, utilization_share: float, prefill_s: float = 0.0) -> Fleet:
    """Size both pools for a rate, with `1 - utilization_share` as headroom.

    Parameters
    ----------
    replica_rps : float
        Saturated rate of one (decode) replica. [requests/s]
    prefill_s : float
        Time of the prefill pool for one prompt. [s]

    Examples
    --------
    >>> fleet(10.0, 4.0, 0.8)
    Fleet(replicas=4, prefill_replicas=0, multiplier_ratio=1.6, idle_share=0.375)
    """
    busy = offered_rps / replica_rps, offered_rps * prefill_s
    needed = [max(math.ceil(work / utilization_share - WHOLE), 1) if work else 0 for work in busy]
    ratio = sum(needed) / sum(busy)
    return Fleet(needed[0], needed[1], ratio, idle_share=1.0 - 1.0 / ratio)


def gpu_second_usd(usd_per_gpu_hour: float) -> float:
    """[USD/accelerator-second]"""
    return usd_per_gpu_hour / SECONDS_PER_HOUR


def _tokens(lengths: Lengths) -> Array:
    """I, K and O of one request. [token]"""
    return np.asarray([_first(lengths.uncached), _first(lengths.cached), _first(lengths.output)])


def _lengths_at(lengths: Lengths, points: Array) -> Lengths:
    """Requests of other lengths with the same share of hits held once, for the same deployment."""
    cached = points[:, 1]
    shared_part = np.asarray(lengths.shared / np.maximum(lengths.cached, 1e-300))
    return replace(
        lengths,
        uncached=points[:, 0],
        cached=cached,
        output=points[:, 2],
        shared=cached * shared_part,
        prompt_unit=lengths.per_prompt,
    )


def _conserving(prices: Array, tokens: Array, cost_gpu_s: float) -> TokenPrices:
    attributed = float(prices @ tokens)
    scale = cost_gpu_s / attributed
    uncached, cached, output = (float(price * scale) for price in prices)
    return TokenPrices(uncached, cached, output, residual_share=attributed / cost_gpu_s - 1.0)


def prefill_gpu_s(replica: Replica, lengths: Lengths, state: SteadyState) -> float:
    """Prefill's part of one request by the `step` attribution. [accelerator-second]"""
    bills = _pool_bills if _is_split(replica) else _shapley_bills
    return bills(replica, lengths, state)[1]


def _is_split(replica: Replica) -> bool:
    return replica.deployments[0].mode == "disaggregated"


def _pool_bills(replica: Replica, lengths: Lengths, state: SteadyState) -> tuple[float, float]:
    gpus = float(replica.gpus[0, 0])
    decode_s = state.loop.step_s * lengths.output / state.sequences
    return gpus * float(decode_s[0, 0]), gpus * float(state.loop.prefill_s[0, 0])


def _shapley_bills(replica: Replica, lengths: Lengths, state: SteadyState) -> tuple[float, float]:
    """Decode's and prefill's accelerator-seconds of one request."""
    loop, output = state.loop, _first(lengths.output)
    prefill_step_s = (
        _first(loop.prefill_step_s) + _first(loop.mixed_step_s) - _first(loop.decode_step_s)
    ) / 2
    mixed_steps = _first(loop.mixed_share) * output / replica.tokens_per_step
    per_request = _first(replica.gpus) / _first(state.sequences)
    prefill_gpu_s = per_request * mixed_steps * prefill_step_s
    return per_request * _first(loop.step_s) * output - prefill_gpu_s, prefill_gpu_s


def _cached_prefill_share(replica: Replica, lengths: Lengths) -> float:
    """Share of a prefill step that is attention over cached tokens."""
    if not _first(lengths.cached):
        return 0.0
    with_cache, without = (_prefill_step_s(replica, at) for at in (lengths, _without_cache(lengths)))
    return float(max(1.0 - without / with_cache, 0.0))


def _cached_token_gpu_s(replica: Replica, lengths: Lengths, prefill_gpu_s: float) -> float:
    """Bill of one more cached token where the request has hardly any: a difference quotient."""
    more = replace(lengths, cached=lengths.cached + 1.0)
    growth = _prefill_step_s(replica, more) / _prefill_step_s(replica, lengths) - 1.0
    return prefill_gpu_s * growth


def _without_cache(lengths: Lengths) -> Lengths:
    return replace(lengths, cached=lengths.cached * 0.0)


def _prefill_step_s(replica: Replica, lengths: Lengths) -> float:
    tokens = np.minimum(lengths.uncached, step_token_limit(replica))
    return float(np.asarray(step_time(replica, prompt_batch(replica, lengths, tokens)).total_s)[0, 0])


def _first(value: Floats) -> float:
    return float(value.item(0)) if isinstance(value, np.ndarray) else float(value)
