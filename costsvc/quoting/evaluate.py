"""One request on its cheapest layout, without the separate prices: what comparisons ask hundreds of times."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from pydantic import ValidationError

from costsvc.db.snapshot import Catalog
from costsvc.engine.pricing import Fleet, fleet
from costsvc.engine.reshape import Reshape
from costsvc.engine.serving import BOUNDS
from costsvc.engine.units import HOURS_PER_MONTH, SECONDS_PER_HOUR, TOKENS_PER_MTOK
from costsvc.errors import Infeasible, InvalidCatalogFile, NoPriceInForce
from costsvc.ingest.faults import invalid_request
from costsvc.quoting.answer.plain import number_exact
from costsvc.quoting.choice import Choice, choose
from costsvc.quoting.gpu_price import GpuPrice, price_of
from costsvc.quoting.request import QuoteRequest
from costsvc.quoting.scenario import Scenario, resolve

LAYOUT = ("gpus", "tp", "pp", "ep", "dp")
"""The parameters of a request that fix its layout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """A request, decided, on the layout that a quote of it would choose."""

    scenario: Scenario
    choice: Choice
    price: GpuPrice

    @property
    def gpus(self) -> int:
        """GPUs of one replica."""
        return self.choice.deployment.gpus

    @property
    def keeps_objectives(self) -> bool:
        """False where an assumed objective had to be relaxed to what a layout reaches."""
        return self.choice.objectives == self.scenario.objectives

    @property
    def concurrency(self) -> int:
        """Whole sequences that run at once in one replica, as a quote prints them."""
        return max(int(number_exact(self.choice.state.sequences) + 1e-9), 1)

    @property
    def bound(self) -> str:
        """What limits the concurrency."""
        return BOUNDS[int(self.choice.state.bound.ravel()[0])]

    @property
    def usd_per_gpu_s(self) -> float:
        """What a second of a saturated GPU is charged, unsold capacity and margin included. [USD/s]"""
        margin = 1.0 + self.scenario.request.margin
        return self.price.usd_per_gpu_second / self.scenario.utilization_share * margin

    @property
    def request_usd(self) -> float:
        """What one request costs at the utilization sold, margin included. [USD]"""
        return number_exact(self.choice.state.request_gpu_s) * self.usd_per_gpu_s

    @property
    def request_tokens(self) -> float:
        """Prompt and output of a mean request. [token]"""
        lengths = self.choice.lengths
        return number_exact(lengths.prompt) + number_exact(lengths.output)

    @property
    def usd_per_mtok(self) -> float:
        """The same per 1,000,000 tokens of its own mix: the blended price of a quote. [USD]"""
        return self.request_usd / self.request_tokens * TOKENS_PER_MTOK

    @property
    def residence_s(self) -> float:
        """How long a mean request is in the service: first token and all others. [s]"""
        loop, lengths = self.choice.state.loop, self.choice.lengths
        return number_exact(loop.ttft_s) + number_exact(lengths.output) * number_exact(loop.step_s)

    def fleet(self, rps: float) -> Fleet:
        """Whole replicas for an offered rate, as a quote with `rps` sizes them."""
        state = self.choice.state
        return fleet(
            rps,
            number_exact(state.requests_per_s),
            self.scenario.utilization_share,
            number_exact(state.loop.prefill_s),
        )

    def fleet_gpus(self, rps: float) -> int:
        """GPUs of that fleet."""
        sized = self.fleet(rps)
        return (sized.replicas + sized.prefill_replicas) * self.gpus

    def usd_per_month(self, rps: float) -> float:
        """The bill of that fleet. [USD/month]"""
        usd_per_gpu_month = self.price.usd_per_gpu_second * SECONDS_PER_HOUR * HOURS_PER_MONTH
        return self.fleet_gpus(rps) * usd_per_gpu_month


def evaluate(
    catalog: Catalog, request: QuoteRequest, today: date, reshape: Reshape | None = None
) -> Evaluated:
    """Decide and solve a request.

    Parameters
    ----------
    reshape : callable, optional
        Puts another architecture in the model's place.

    Raises
    ------
    CostsvcError
        As a quote of the request would.
    """
    scenario = resolve(catalog, request, today)
    if reshape is not None:
        model = replace(scenario.model, spec=reshape(scenario.model.spec))
        scenario = replace(scenario, case=replace(scenario.case, model=model))
    price = price_of(catalog, scenario)
    return Evaluated(scenario=scenario, choice=choose(scenario), price=price)


def changed(request: QuoteRequest, changes: Mapping[str, Any]) -> QuoteRequest:
    """A request with other values; None takes one away, so that its default holds again.

    Raises
    ------
    InvalidRequest
        The values contradict one another.
    """
    given = {name: getattr(request, name) for name in request.model_fields_set}
    kept = {name: value for name, value in {**given, **changes}.items() if value is not None}
    return validated(kept)


def plain_quote(request: QuoteRequest, changes: Mapping[str, Any]) -> QuoteRequest:
    """What a comparison asks of a single quote, with other values."""
    names = request.model_fields_set & set(QuoteRequest.model_fields)
    given = {name: getattr(request, name) for name in names}
    return validated({name: value for name, value in {**given, **changes}.items() if value is not None})


def validated(given: Mapping[str, Any]) -> QuoteRequest:
    """A request from values.

    Raises
    ------
    InvalidRequest
        They contradict one another.
    """
    try:
        return QuoteRequest.model_validate(given)
    except ValidationError as error:
        raise invalid_request(error, QuoteRequest) from error


def ranked(catalog: Catalog, request: QuoteRequest, gpu_ids: list[str], today: date) -> list[Evaluated]:
    """A request on each of several accelerators that can run it within its objectives, the cheapest first."""
    found = []
    for gpu_id in gpu_ids:
        with suppress(Infeasible, InvalidCatalogFile):
            one = evaluate(catalog, changed(request, {"gpu": gpu_id}), today)
            if one.keeps_objectives:
                found.append(one)
    return sorted(found, key=lambda one: one.request_usd)


def priced_gpus(catalog: Catalog, request: QuoteRequest, today: date) -> list[str]:
    """Accelerators with a price of the request's kind on its day; all where it names its own price."""
    day = request.as_of or today
    if request.price_usd_per_gpu_hour is not None:
        return list(catalog.gpus)
    found = []
    for gpu_id in catalog.gpus:
        with suppress(NoPriceInForce):
            catalog.reference_price(gpu_id, day, request.market, request.provider, request.region)
            found.append(gpu_id)
    return found
