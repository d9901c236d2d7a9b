"""Many quotes as rows: what differs only in money is computed once, and a row that fails says why."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from operator import itemgetter
from typing import Any, Final

from costsvc.db.snapshot import Catalog
from costsvc.engine.uncertainty import ErrorBand
from costsvc.engine.units import SECONDS_PER_HOUR
from costsvc.errors import CostsvcError, InvalidRequest
from costsvc.quoting.answer import grounds, prices, state
from costsvc.quoting.answer.currency import with_currency
from costsvc.quoting.answer.plain import Section, number
from costsvc.quoting.bill import Bill, bill_of, bills_alike, repriced
from costsvc.quoting.choice import Choice, choose, choose_alike
from costsvc.quoting.flat import ERROR, money_row, work_row
from costsvc.quoting.gpu_price import UNIT_PRICE, GpuPrice, price_of
from costsvc.quoting.money import money
from costsvc.quoting.quote import ENGINE_VERSION
from costsvc.quoting.request import QuoteRequest, parse_request
from costsvc.quoting.scenario import Scenario, resolve

# What changes a row's money and nothing before it.
_MONEY: Final = frozenset(
    {
        "price_usd_per_gpu_hour",
        "provider",
        "market",
        "region",
        "margin",
        "currency",
        "fx_rate",
        "as_of",
        "revision",
        "private_revision",
        "trace",
    }
)
_physics: Final = itemgetter(*(name for name in QuoteRequest.model_fields if name not in _MONEY))
# An objective that was asked for and one that was assumed are met differently.
_ASKED: Final = ("slo", "tpot_ms", "ttft_ms")
MOST_KEPT: Final = 1000
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Solved:
    """A scenario without its money; `row` lacks the columns of money."""

    scenario: Scenario
    choice: Choice
    bill: Bill
    band: ErrorBand
    row: dict[str, Any]


class RowMaker:
    """Rows from one catalog. It remembers what it solved, so make one for each call."""

    def __init__(self, catalog: Catalog, today: date) -> None:
        self._catalog = catalog
        self._today = today
        self._solved: dict[tuple[Any, ...], _Solved | CostsvcError] = {}

    def row(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The row of a request in the words of the query; its `error` says why it has no prices."""
        return self.rows([given])[0]

    def rows(self, given: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The same of several, a row each: what differs in lengths alone is solved together."""
        asked = [_parsed(one) for one in given]
        self._solve_alike([one for one in asked if isinstance(one, _Asked)])
        return [self._row(one, request) for one, request in zip(given, asked, strict=True)]

    def _row(self, given: Mapping[str, Any], asked: "_Asked | CostsvcError") -> dict[str, Any]:
        try:
            if isinstance(asked, CostsvcError):
                raise asked
            return self._priced(asked)
        except CostsvcError as error:
            return self.failed(given, error.message)
        except Exception as error:
            _LOG.exception("a row failed")
            return self.failed(given, f"Internal error: {error!r}.")

    def _priced(self, asked: "_Asked") -> dict[str, Any]:
        request = asked.request
        if request.revision not in (None, self._catalog.revision):
            raise InvalidRequest(
                f"revision is {request.revision}, but a table answers from one catalog, which is revision "
                f"{self._catalog.revision}. Leave it away, or ask for this quote alone.",
                field="revision",
            )
        solved = self._solve(asked)
        scenario = replace(solved.scenario, request=request, as_of=request.as_of or self._today)
        price = price_of(self._catalog, scenario)
        bill = repriced(solved.bill, request, price)
        return solved.row | money_row(_money_sections(scenario, solved.choice, price, bill, solved.band))

    def failed(self, given: Mapping[str, Any], reason: str) -> dict[str, Any]:
        """The row of what has no answer: what was asked, by its ids where the catalog has it, and the reason."""
        return {
            "as_of": _day(given.get("as_of"), self._today),
            "catalog_revision": self._catalog.revision,
            "engine_version": ENGINE_VERSION,
            "model": _id(self._catalog.models_meant, given.get("model")),
            "gpu": _id(self._catalog.gpus_meant, given.get("gpu")),
            ERROR: reason,
        }

    def _solve(self, asked: "_Asked") -> _Solved:
        solved = self._solved.pop(asked.physics, None) or self._computed(asked.request)
        self._keep(asked.physics, solved)
        if isinstance(solved, CostsvcError):
            raise solved
        return solved

    def _keep(self, key: tuple[Any, ...], solved: _Solved | CostsvcError) -> None:
        self._solved[key] = solved
        if len(self._solved) > MOST_KEPT:
            # A dictionary keeps the order of entry, so the first is what was not asked for the longest.
            del self._solved[next(iter(self._solved))]

    def _computed(self, request: QuoteRequest) -> _Solved | CostsvcError:
        try:
            scenario = resolve(self._catalog, request, self._today)
            choice = choose(scenario)
        except CostsvcError as error:
            return error
        return self._made(scenario, choice, bill_of(scenario, choice, UNIT_PRICE))

    def _solve_alike(self, every: Iterable["_Asked"]) -> None:
        """Solve what is new, all of a case at once; what that does not settle is left to `_computed`."""
        new = {one.physics: one.request for one in every}
        cases: dict[tuple[Any, ...], dict[tuple[Any, ...], Scenario]] = {}
        for physics, request in new.items():
            if physics in self._solved or len(new) == 1:
                continue
            with suppress(CostsvcError):
                scenario = resolve(self._catalog, request, self._today)
                if scenario.sharing is None:
                    cases.setdefault(_case(scenario), {})[physics] = scenario
        for scenarios in cases.values():
            with suppress(CostsvcError):
                self._solve_case(scenarios)

    def _solve_case(self, by_physics: Mapping[tuple[Any, ...], Scenario]) -> None:
        scenarios = list(by_physics.values())
        by_layout: dict[int, list[tuple[tuple[Any, ...], Scenario, Choice]]] = {}
        for (physics, scenario), choice in zip(by_physics.items(), choose_alike(scenarios), strict=True):
            if choice is not None:
                by_layout.setdefault(id(choice.replica), []).append((physics, scenario, choice))
        for alike in by_layout.values():
            bills = bills_alike([one for _, one, _ in alike], [choice for *_, choice in alike], UNIT_PRICE)
            for (physics, scenario, choice), bill in zip(alike, bills, strict=True):
                self._keep(physics, self._made(scenario, choice, bill))

    def _made(self, scenario: Scenario, choice: Choice, bill: Bill) -> _Solved:
        band = grounds.error_band(self._catalog, scenario)
        answer: Section = {
            "catalog_revision": self._catalog.revision,
            "engine_version": ENGINE_VERSION,
            "request": state.request_section(scenario, choice),
            "deployment": state.deployment_section(scenario, choice),
            "concurrency": state.concurrency_section(choice),
            "latency": state.latency_section(choice),
            "throughput": state.throughput_section(scenario, choice),
            "uncertainty": grounds.uncertainty_section(self._catalog, scenario, choice),
        }
        return _Solved(scenario, choice, bill, band, work_row(answer))


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request, and all that its work depends on."""

    request: QuoteRequest
    physics: tuple[Any, ...]


def _parsed(given: Mapping[str, Any]) -> _Asked | CostsvcError:
    try:
        request = parse_request(given)
    except CostsvcError as error:
        return error
    asked = [name in request.model_fields_set for name in _ASKED]
    return _Asked(request, (*_physics(vars(request)), *asked))


def _case(scenario: Scenario) -> tuple[Any, ...]:
    """All of it but the mean lengths."""
    traffic, resolved = scenario.traffic, scenario.resolved
    spread = traffic.input_cv, traffic.output_cv, traffic.length_correlation
    facts = scenario.model.id, scenario.gpu.id, id(resolved.calibration)
    asked = scenario.objectives, scenario.utilization_share, scenario.request.attribution
    return *facts, scenario.base, scenario.wanted, *asked, *spread


def _cost(scenario: Scenario, choice: Choice, price: GpuPrice, bill: Bill) -> Section:
    """Of the section of that name what a row shows: the votes behind a price would be most of the work."""
    return {
        "request_usd": money(bill.request_usd),
        "utilization": number(scenario.utilization_share),
        "margin": number(scenario.request.margin),
        "replica_usd_per_hour": money(choice.deployment.gpus * bill.gpu_second_usd * SECONDS_PER_HOUR),
        "gpu_price": {"usd_per_gpu_hour": money(price.usd_per_gpu_hour), "basis": price.basis},
    }


def _money_sections(
    scenario: Scenario, choice: Choice, price: GpuPrice, bill: Bill, band: ErrorBand
) -> Section:
    answer: Section = {
        "as_of": scenario.as_of.isoformat(),
        "cost": _cost(scenario, choice, price, bill),
        "prices": prices.prices_section(scenario, choice, bill, band),
    }
    return with_currency(answer, price.exchange)


def _id(meant: Callable[[str], Set[str]], given: object) -> object:
    """The id of what was asked for; a spelling that means none or several stays as it is."""
    ids = meant(given) if isinstance(given, str) else ()
    return next(iter(ids)) if len(ids) == 1 else given


def _day(given: object, today: date) -> str:
    """The day that was asked for, where it is one: whatever else stands there is no day to repeat."""
    try:
        return date.fromisoformat(str(given)).isoformat()
    except ValueError:
        return today.isoformat()
