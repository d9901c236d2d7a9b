"""Published prices of the same model: what the same tokens cost there, cached ones included."""

import math

from costsvc.db.entries import ApiPrice
from costsvc.db.prices import of_one_tier
from costsvc.db.snapshot import Catalog
from costsvc.engine.units import HOURS_PER_MONTH, SECONDS_PER_HOUR
from costsvc.quoting.answer.plain import Section, number, number_exact
from costsvc.quoting.evaluate import Evaluated
from costsvc.quoting.launch.traffic import Offered
from costsvc.quoting.money import money
from costsvc.quoting.tariff import usd_of_tokens

LISTED_OFFERS = 10
WHOLE = 1e-9


def offers_for(catalog: Catalog, running: Evaluated, ctx: int | None) -> list[ApiPrice]:
    """Published prices of input and output; with a context, of those that take it or name no limit.

    Of a seller with tiers then the one of the mean prompt.
    """
    scenario, prompt = running.scenario, number_exact(running.choice.lengths.prompt)
    published = catalog.api_prices(scenario.model.id, scenario.as_of)
    return [
        price
        for price in (published if ctx is None else of_one_tier(published, prompt))
        if price.input_usd_per_mtok is not None
        and price.output_usd_per_mtok is not None
        and (ctx is None or price.context_limit_tokens is None or price.context_limit_tokens >= ctx)
    ]


def usd_of_offer(offer: ApiPrice, running: Evaluated) -> float:
    """What one mean request costs there. [USD]"""
    lengths = running.choice.lengths
    return usd_of_tokens(
        offer,
        uncached=number_exact(lengths.uncached),
        cached=number_exact(lengths.cached),
        output=number_exact(lengths.output),
    )


def break_even(
    api_request_usd: float, replica_usd_per_s: float, replica_rps: float
) -> tuple[float, float] | None:
    r"""Rates from which own replicas cost less than buying: for the first time, and for good.

    One replica costs :math:`c` and carries :math:`r`; buying :math:`x` costs :math:`a x`. Own is first
    cheaper at :math:`c / a`, where that is within one replica, and never where it is not. With
    :math:`\rho = a r / c`, the last number of replicas that begins dearer than buying is the largest k
    below :math:`\rho / (\rho - 1)`, and it is dearer up to :math:`k c / a`.

    Parameters
    ----------
    api_request_usd : float
        [USD/request]
    replica_usd_per_s : float
        [USD/s]
    replica_rps : float
        What a replica carries with its headroom. [1/s]

    Returns
    -------
    tuple or None
        [1/s]; None where own replicas never cost less.

    Examples
    --------
    >>> break_even(1.0, 6.0, 10.0)
    (6.0, 12.0)
    >>> break_even(1.0, 10.0, 5.0) is None
    True
    """
    ratio = api_request_usd * replica_rps / replica_usd_per_s
    if ratio < 1.0:
        return None
    first = replica_usd_per_s / api_request_usd
    if ratio == 1.0:
        return first, math.inf
    last = math.ceil(ratio / (ratio - 1.0) - WHOLE) - 1
    return first, last * first


def buying_section(catalog: Catalog, running: Evaluated, offered: Offered) -> Section:
    """The same tokens from published APIs, and the traffic from which own replicas cost less."""
    ctx = math.ceil(running.scenario.traffic.context_limit_tokens)
    priced = sorted(
        ((usd_of_offer(offer, running), offer) for offer in offers_for(catalog, running, ctx)),
        key=lambda pair: (pair[0], pair[1].provider, pair[1].provider_model_id),
    )
    known = len({offer.sold_as for offer in offers_for(catalog, running, None)})
    section: Section = {
        "published_prices": known,
        "that_take_the_context": len(priced),
        "own_usd_per_month": money(running.usd_per_month(offered.rps)),
        "cheapest": [_row(running, usd, offer, offered) for usd, offer in priced[:LISTED_OFFERS]],
        "break_even": None,
    }
    if not priced:
        section["note"] = (
            f"no published price of {running.scenario.model.id} is known to take {ctx:,} tokens on this day"
        )
        return section
    section |= _break_even(running, priced[0][0])
    return section


def _row(running: Evaluated, usd: float, offer: ApiPrice, offered: Offered) -> Section:
    found = _from_rates(running, usd)
    return {
        "provider": offer.provider,
        "provider_model_id": offer.provider_model_id,
        "request_usd": money(usd),
        "usd_per_month": money(usd * offered.rps * SECONDS_PER_HOUR * HOURS_PER_MONTH),
        "own_cheaper_from_rps": None if found is None else number(found[0]),
        "cached_price_known": offer.cached_input_usd_per_mtok is not None,
        "context_limit_tokens": offer.context_limit_tokens,
        "observed": offer.observed.isoformat() if offer.observed else None,
        "source": offer.source_id,
    }


def _from_rates(running: Evaluated, api_request_usd: float) -> tuple[float, float] | None:
    """Rates from which own replicas cost less than one published price. [1/s]"""
    state = running.choice.state
    decode, prefill = running.gpus * running.price.usd_per_gpu_second, number_exact(state.prefill_replicas)
    carried = number_exact(state.requests_per_s) * running.scenario.utilization_share
    # A prefill pool comes in proportion: of two pools both are then counted as continuous.
    return break_even(api_request_usd, decode * (1.0 + prefill), carried)


def _break_even(running: Evaluated, api_request_usd: float) -> Section:
    found = _from_rates(running, api_request_usd)
    if found is None:
        return {"note": "the cheapest published price is below the own cost of a full replica at any traffic"}
    first, for_good = found
    return {
        "break_even": {
            "first_rps": number(first),
            "for_good_rps": number(for_good) if math.isfinite(for_good) else None,
            "means": "from the first rate own replicas cost less than the cheapest published price; beyond "
            "the second "
            "they do whatever the number of whole replicas",
        }
    }
