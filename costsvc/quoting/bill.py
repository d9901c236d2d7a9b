"""The money of a chosen deployment: prices per token class, the request's cost, the fleet."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from costsvc.engine.memory import Lengths
from costsvc.engine.pricing import (
    Fleet,
    TokenPrices,
    cached_token_bytes,
    context_rent_gpus_per_byte,
    fleet,
    load_multiplier,
    marginal_prices,
    marginal_rays,
    rays_beside,
    rent_step_bytes,
    step_prices,
)
from costsvc.engine.ray import Ray
from costsvc.engine.serving import Solution, SteadyState
from costsvc.quoting.choice import Choice
from costsvc.quoting.exchange import Exchange
from costsvc.quoting.gpu_price import GpuPrice
from costsvc.quoting.request import QuoteRequest
from costsvc.quoting.scenario import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The chosen layout with other hits."""

    lengths: Lengths
    state: SteadyState


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """Prices and costs, in accelerator-seconds and USD.

    `factor` turns accelerator-seconds of a saturated deployment into what is charged:
    price of a second x load multiplier x (1 + margin). [USD/accelerator-second]

    `fleet` carries a rate that is the same all day; `hours` are the fleets of a day's hours, scaled with the
    load, None where nothing is asked.
    """

    gpu_second_usd: float
    load_multiplier: float
    factor: float
    request_gpu_s: float
    tokens: TokenPrices
    fleet: Fleet | None
    hours: tuple[Fleet | None, ...]
    rent_gpus_per_byte: float
    token_bytes: float
    exchange: Exchange | None
    compared: Compared | None = None

    @property
    def request_usd(self) -> float:
        """What one request is charged. [USD]"""
        return self.request_gpu_s * self.factor


def bill_of(scenario: Scenario, choice: Choice, price: GpuPrice, other: Lengths | None = None) -> Bill:
    """Attribute the cost of one request and put money on it.

    Parameters
    ----------
    other : Lengths, optional
        Another request on the same layout, to be solved beside it.
    """
    return _bill(scenario, choice, price, *_solved([(choice, other)], scenario))


def bills_alike(scenarios: Sequence[Scenario], choices: Sequence[Choice], price: GpuPrice) -> list[Bill]:
    """The bills of requests on one layout under the same objectives, in one evaluation."""
    solved = _solved([(choice, None) for choice in choices], scenarios[0])
    return [
        _bill(scenario, choice, price, one)
        for scenario, choice, one in zip(scenarios, choices, solved, strict=True)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Solved:
    """What a bill needs beside the request's own state: its rate with more memory, the ray, and another request."""

    more_requests_per_s: float | None
    ray: Ray | None
    compared: Compared | None


def _bill(scenario: Scenario, choice: Choice, price: GpuPrice, solved: _Solved) -> Bill:
    request, state = scenario.request, choice.state
    cost_gpu_s = float(state.request_gpu_s[0, 0])
    rates = scenario.load.hourly_rps or (scenario.load.rps,)
    hours = tuple(_fleet(scenario, state, rate) if rate else None for rate in rates)
    second_usd = price.usd_per_gpu_second
    multiplier = _multiplier(hours, scenario.utilization_share)
    return Bill(
        gpu_second_usd=second_usd,
        load_multiplier=multiplier,
        factor=second_usd * multiplier * (1.0 + request.margin),
        request_gpu_s=cost_gpu_s,
        tokens=token_prices(scenario, choice, choice.lengths, state, solved.ray),
        fleet=hours[0] if len(hours) == 1 else None,
        hours=hours,
        rent_gpus_per_byte=_rent(choice, solved),
        token_bytes=cached_token_bytes(choice.replica, choice.lengths),
        exchange=price.exchange,
        compared=solved.compared,
    )


def _solved(asked: Sequence[tuple[Choice, Lengths | None]], scenario: Scenario) -> list[_Solved]:
    """What bills on one layout need, each with its other request, in as few evaluations as can be."""
    replica, objectives = asked[0][0].replica, asked[0][0].objectives
    is_marginal = scenario.request.attribution == "marginal"
    steps = [rent_step_bytes(replica, choice.lengths, choice.state) for choice, _ in asked]
    others: list[Lengths] = []
    extra_bytes: list[float] = []
    for (choice, other), step in zip(asked, steps, strict=True):
        if step:
            others.append(choice.lengths)
            extra_bytes.append(step)
        if other is not None:
            others.append(other)
            extra_bytes.append(0.0)
    ends = [choice.lengths for choice, _ in asked] if is_marginal else []
    rays, beside = list[Ray](), list[Solution]()
    if ends or others:
        rays, beside = rays_beside(replica, ends, objectives, scenario.utilization_share, others, extra_bytes)
    of_rays, of_others = iter(rays), iter(beside)
    return [
        _Solved(
            more_requests_per_s=float(next(of_others).requests_per_s[0, 0]) if step else None,
            ray=next(of_rays, None),
            compared=None if other is None else Compared(lengths=other, state=next(of_others).state()),
        )
        for (_, other), step in zip(asked, steps, strict=True)
    ]


def _rent(choice: Choice, solved: _Solved) -> float:
    if solved.more_requests_per_s is None:
        return 0.0
    return context_rent_gpus_per_byte(
        choice.replica, choice.lengths, choice.state, solved.more_requests_per_s
    )


def repriced(bill: Bill, request: QuoteRequest, price: GpuPrice) -> Bill:
    """The same work at another price of the accelerator, margin or rate of exchange."""
    second_usd = price.usd_per_gpu_second
    return replace(
        bill,
        gpu_second_usd=second_usd,
        factor=second_usd * bill.load_multiplier * (1.0 + request.margin),
        exchange=price.exchange,
    )


def token_prices(
    scenario: Scenario,
    choice: Choice,
    lengths: Lengths,
    state: SteadyState,
    ray: Ray | None = None,
) -> TokenPrices:
    """Prices per token under the asked attribution; marginal ones by their `ray`. [accelerator-second/token]"""
    cost_gpu_s = float(state.request_gpu_s[0, 0])
    if scenario.request.attribution != "marginal":
        pools = scenario.request.attribution == "pools"
        return step_prices(choice.replica, lengths, state, cost_gpu_s, pools=pools)
    if ray is None:
        (ray,) = marginal_rays(choice.replica, [lengths], choice.objectives, scenario.utilization_share)
    return marginal_prices(choice.replica, lengths, ray, cost_gpu_s)


def _fleet(scenario: Scenario, state: SteadyState, rps: float) -> Fleet:
    return fleet(
        rps,
        float(state.requests_per_s[0, 0]),
        scenario.utilization_share,
        float(np.ravel(state.loop.prefill_s)[0]),
    )


def _multiplier(hours: tuple[Fleet | None, ...], utilization_share: float) -> float:
    """What the fleets of a day cost over what the carried load would cost saturated. [1]"""
    sized = [one for one in hours if one]
    if not sized:
        return load_multiplier(utilization_share)
    replicas = [one.replicas + one.prefill_replicas for one in sized]
    busy = sum(count / one.multiplier_ratio for count, one in zip(replicas, sized, strict=True))
    return sum(replicas) / busy
