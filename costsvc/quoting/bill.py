"""The money of a chosen deployment: prices per token class, the request's cost, the fleet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from costsvc.engine.formulas import Array
from costsvc.engine.memory import Lengths
from costsvc.engine.pricing import (
    Fleet,
    TokenPrices,
    cached_token_bytes,
    context_rent_gpus_per_byte,
    fleet,
    load_multiplier,
    marginal_prices,
    ray_lengths,
    rent_step_bytes,
    step_prices,
)
from costsvc.engine.serving import Solution, SteadyState, solve_together
from costsvc.quoting.choice import Choice
from costsvc.quoting.exchange import Exchange
from costsvc.quoting.gpu_price import GpuPrice
from costsvc.quoting.request import QuoteRequest
from costsvc.quoting.scenario import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The chosen layout with other hits; `tokens` are the prices there, None where it misses the objectives."""

    lengths: Lengths
    state: SteadyState
    tokens: TokenPrices | None


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
        Another request on the same layout, to be solved and priced beside it.
    """
    return _bill(
        scenario, choice, price, other, _solved([_asked(scenario, choice, other)], scenario, choice)[0]
    )


def bills_alike(scenarios: Sequence[Scenario], choices: Sequence[Choice], price: GpuPrice) -> list[Bill]:
    """The bills of requests on one layout under the same objectives, in one evaluation."""
    pairs = list(zip(scenarios, choices, strict=True))
    solved = _solved([_asked(*pair, None) for pair in pairs], *pairs[0])
    return [_bill(*pair, price, None, one) for pair, one in zip(pairs, solved, strict=True)]


def _bill(
    scenario: Scenario,
    choice: Choice,
    price: GpuPrice,
    other: Lengths | None,
    solved: Mapping[str, Solution],
) -> Bill:
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
        tokens=token_prices(scenario, choice, choice.lengths, state, _costs(solved, "around")),
        fleet=hours[0] if len(hours) == 1 else None,
        hours=hours,
        rent_gpus_per_byte=_rent(choice, solved),
        token_bytes=cached_token_bytes(choice.replica, choice.lengths),
        exchange=price.exchange,
        compared=None if other is None else _compared(scenario, choice, other, solved),
    )


def _asked(scenario: Scenario, choice: Choice, other: Lengths | None) -> dict[str, tuple[Lengths, float]]:
    """What a bill needs solved beside the request itself, with the cache memory added for it. [B]

    A little `more` memory where it has a rent, the points `around` the ray of marginal prices, and the `other`
    request with the points around its own.
    """
    asked: dict[str, tuple[Lengths, float]] = {}
    marginal = scenario.request.attribution == "marginal"
    more_bytes = rent_step_bytes(choice.replica, choice.lengths, choice.state)
    if more_bytes:
        asked["more"] = choice.lengths, more_bytes
    if marginal:
        asked["around"] = ray_lengths(choice.lengths), 0.0
    if other is not None:
        asked["other"] = other, 0.0
        if marginal:
            asked["around_other"] = ray_lengths(other), 0.0
    return asked


def _solved(
    bills: Sequence[Mapping[str, tuple[Lengths, float]]], scenario: Scenario, choice: Choice
) -> list[dict[str, Solution]]:
    """All that bills on one layout ask for, in one evaluation."""
    asked = [pair for one in bills for pair in one.values()]
    if not asked:
        return [{} for _ in bills]
    requests, extras = zip(*asked, strict=True)
    states = iter(
        solve_together(choice.replica, requests, choice.objectives, scenario.utilization_share, extras)
    )
    return [{name: next(states) for name in one} for one in bills]


def _rent(choice: Choice, solved: Mapping[str, Solution]) -> float:
    if "more" not in solved:
        return 0.0
    return context_rent_gpus_per_byte(choice.replica, choice.lengths, choice.state, solved["more"].state())


def _costs(solved: Mapping[str, Solution], name: str) -> Array | None:
    """Costs of the points around a ray, where they were asked for. [accelerator-second]"""
    return solved[name].least_gpu_s()[0] if name in solved else None


def _compared(scenario: Scenario, choice: Choice, other: Lengths, solved: Mapping[str, Solution]) -> Compared:
    state, tokens = solved["other"].state(), None
    if not np.isnan(state.sequences[0, 0]):
        tokens = token_prices(scenario, choice, other, state, _costs(solved, "around_other"))
    return Compared(lengths=other, state=state, tokens=tokens)


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
    around: Array | None = None,
) -> TokenPrices:
    """Prices per token under the asked attribution; see `marginal_prices`. [accelerator-second/token]"""
    cost_gpu_s = float(state.request_gpu_s[0, 0])
    if scenario.request.attribution == "marginal":
        return marginal_prices(
            choice.replica, lengths, choice.objectives, scenario.utilization_share, cost_gpu_s, around=around
        )
    pools = scenario.request.attribution == "pools"
    return step_prices(choice.replica, lengths, state, cost_gpu_s, pools=pools)


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
