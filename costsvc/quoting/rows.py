"""Many quotes as rows: what differs only in money is computed once, and a row that fails says why."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Final

from costsvc.db.snapshot import Catalog
from costsvc.engine.uncertainty import ErrorBand
from costsvc.engine.units import SECONDS_PER_HOUR
from costsvc.errors import CostsvcError, InvalidRequest
from costsvc.quoting.answer import grounds, prices, state
from costsvc.quoting.answer.plain import Section, number
from costsvc.quoting.bill import Bill, bill_of, repriced
from costsvc.quoting.choice import Choice, choose
from costsvc.quoting.flat import ERROR, quote_row
from costsvc.quoting.gpu_price import UNIT_PRICE, GpuPrice, price_of
from costsvc.quoting.money import money
from costsvc.quoting.quote import ENGINE_VERSION
from costsvc.quoting.request import QuoteRequest, parse_request
from costsvc.quoting.scenario import Scenario, resolve
from costsvc.quoting.tables.table import Row

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
        "trace",
    }
)
_PHYSICS: Final = tuple(name for name in QuoteRequest.model_fields if name not in _MONEY)
# An objective that was asked for and one that was assumed are met differently.
_ASKED: Final = ("slo", "tpot_ms", "ttft_ms")
MOST_KEPT: Final = 1000
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Solved:
    """A scenario without its money; `row` is right in every column but those of money."""

    scenario: Scenario
    choice: Choice
    bill: Bill
    band: ErrorBand
    row: Row


class RowMaker:
    """Rows from one catalog. It remembers what it solved, so make one for each call."""

    def __init__(self, catalog: Catalog, today: date) -> None:
        self._catalog = catalog
        self._today = today
        self._solved: dict[tuple[Any, ...], _Solved | CostsvcError] = {}

    def row(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The row of a request in the words of the query; its `error` says why it has no prices."""
        try:
            return self.priced(parse_request(given))
        except CostsvcError as error:
            return self.failed(given, error.message)
        except Exception as error:
            _LOG.exception("a row failed")
            return self.failed(given, f"Internal error: {error!r}.")

    def priced(self, request: QuoteRequest) -> dict[str, Any]:
        """The row of a request.

        Raises
        ------
        CostsvcError
            Why there is none.
        """
        if request.revision not in (None, self._catalog.revision):
            raise InvalidRequest(
                f"revision is {request.revision}, but a table answers from one catalog, which is revision "
                f"{self._catalog.revision}. Leave it away, or ask for this quote alone.",
                field="revision",
            )
        solved = self._solve(request)
        scenario = replace(solved.scenario, request=request, as_of=request.as_of or self._today)
        price = price_of(self._catalog, scenario)
        bill = repriced(solved.bill, request, price)
        return quote_row(_money_sections(scenario, solved.choice, price, bill, solved.band), solved.row)

    def failed(self, given: Mapping[str, Any], reason: str) -> dict[str, Any]:
        """The row of what has no answer: what was asked, of which catalog, and the reason."""
        return {
            "as_of": _day(given.get("as_of"), self._today),
            "catalog_revision": self._catalog.revision,
            "engine_version": ENGINE_VERSION,
            "model": given.get("model"),
            "gpu": given.get("gpu"),
            ERROR: reason,
        }

    def _solve(self, request: QuoteRequest) -> _Solved:
        asked = tuple(name in request.model_fields_set for name in _ASKED)
        key = (*(getattr(request, name) for name in _PHYSICS), *asked)
        solved = self._solved.pop(key, None) or self._computed(request)
        self._solved[key] = solved
        if len(self._solved) > MOST_KEPT:
            # A dictionary keeps the order of entry, so the first is what was not asked for the longest.
            del self._solved[next(iter(self._solved))]
        if isinstance(solved, CostsvcError):
            raise solved
        return solved

    def _computed(self, request: QuoteRequest) -> _Solved | CostsvcError:
        try:
            scenario = resolve(self._catalog, request, self._today)
            choice = choose(scenario)
        except CostsvcError as error:
            return error
        bill = bill_of(scenario, choice, UNIT_PRICE)
        band, _ = grounds.error_band(self._catalog, scenario)
        sections: Section = {
            "catalog_revision": self._catalog.revision,
            "engine_version": ENGINE_VERSION,
            "request": state.request_section(scenario, choice),
            "deployment": state.deployment_section(scenario, choice),
            "concurrency": state.concurrency_section(choice),
            "latency": state.latency_section(choice),
            "throughput": state.throughput_section(scenario, choice),
            "uncertainty": grounds.uncertainty_section(self._catalog, scenario, choice),
        }
        answer = {**_money_sections(scenario, choice, UNIT_PRICE, bill, band), **sections}
        return _Solved(scenario, choice, bill, band, quote_row(answer))


def _cost(scenario: Scenario, choice: Choice, price: GpuPrice, bill: Bill) -> Section:
    """Of the section of that name what a row shows: the votes behind a price would be most of the work."""
    return {
        "request_usd": money(bill.request_usd),
        "utilization": number(scenario.utilization_share),
        "margin": number(scenario.request.margin),
        "replica_usd_per_hour": money(choice.deployment.gpus * bill.gpu_second_usd * SECONDS_PER_HOUR),
        "gpu_price": {"usd_per_gpu_hour": money(price.usd_per_gpu_hour)},
    }


def _money_sections(
    scenario: Scenario, choice: Choice, price: GpuPrice, bill: Bill, band: ErrorBand
) -> Section:
    return {
        "as_of": scenario.as_of.isoformat(),
        "cost": _cost(scenario, choice, price, bill),
        "prices": prices.prices_section(scenario, choice, bill, band),
    }


def _day(given: object, today: date) -> str:
    """The day that was asked for, where it is one: whatever else stands there is no day to repeat."""
    try:
        return date.fromisoformat(str(given)).isoformat()
    except ValueError:
        return today.isoformat()
