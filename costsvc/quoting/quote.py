"""One quote: from a request and a catalog to an answer."""

from datetime import date
from importlib.metadata import version

from costsvc.db.snapshot import Catalog
from costsvc.quoting.answer import grounds, prefix, prices, state, traffic
from costsvc.quoting.answer.currency import with_currency
from costsvc.quoting.answer.plain import Section
from costsvc.quoting.bill import bill_of
from costsvc.quoting.choice import choose
from costsvc.quoting.explain import trace_of
from costsvc.quoting.gpu_price import price_of
from costsvc.quoting.request import QuoteRequest
from costsvc.quoting.scenario import resolve
from costsvc.quoting.warned import warnings_of

ENGINE_VERSION = version("costsvc")


def make_quote(catalog: Catalog, request: QuoteRequest, today: date) -> Section:
    """Answer a request from one revision of the catalog.

    Parameters
    ----------
    today : date
        The day whose prices hold where the request names none. UTC.

    Raises
    ------
    CostsvcError
        The sentence says what was asked, what is there and what to do next.
    """
    scenario = resolve(catalog, request, today)
    price = price_of(catalog, scenario)
    choice = choose(scenario)
    bill = bill_of(scenario, choice, price, prefix.other_lengths(catalog, scenario, choice))
    band = grounds.error_band(catalog, scenario)
    answer: Section = {
        "as_of": scenario.as_of.isoformat(),
        "catalog_revision": catalog.revision,
        **({} if catalog.private is None else {"private_revision": catalog.private_revision}),
        "engine_version": ENGINE_VERSION,
        "request": state.request_section(scenario, choice),
        "deployment": state.deployment_section(scenario, choice),
        "cost": prices.cost_section(scenario, choice, price, bill),
        "prices": prices.prices_section(scenario, choice, bill, band),
        "prefix_caching": prefix.prefix_section(catalog, scenario, choice, bill),
        "context_rent": prefix.rent_section(choice, bill),
        "concurrency": state.concurrency_section(choice),
        "memory": state.memory_section(scenario, choice),
        "latency": state.latency_section(choice),
        "throughput": state.throughput_section(scenario, choice),
        "uncertainty": grounds.uncertainty_section(catalog, scenario, choice),
        "market": grounds.market_section(catalog, scenario),
        "assumptions": grounds.assumptions_section(catalog, scenario),
        "sources": grounds.sources_section(catalog, scenario, price),
        "warnings": warnings_of(scenario, choice, bill),
    }
    load = traffic.traffic_section(scenario, choice, bill)
    if load is not None:
        answer["traffic"] = load
    if request.trace:
        answer["trace"] = trace_of(scenario, choice, bill)
    return with_currency(answer, price.exchange)
