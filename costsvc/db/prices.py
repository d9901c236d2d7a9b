"""Which price holds on a day, and what many offers amount to: the reference price."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import MINYEAR, date
from decimal import Decimal
from math import inf
from statistics import median

from costsvc.db.entries import ApiPrice, DatedPrice, Market, Offer
from costsvc.db.names import normalised
from costsvc.errors import NoPriceInForce

_LISTED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """One provider's say: the median of its offers. [USD/h]"""

    provider: str
    usd_per_gpu_hour: Decimal
    offers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencePrice:
    """The median of the providers' votes, with what it rests on.

    `lowest` and `highest` are of single offers, not of votes; `first_observed` and `last_observed` are the
    days the prices in force were observed. `negotiated` prices are of one owner, and of nobody else's offers.
    [USD/h]
    """

    gpu_id: str
    market: Market
    as_of: date
    usd_per_gpu_hour: Decimal
    lowest_usd_per_gpu_hour: Decimal
    highest_usd_per_gpu_hour: Decimal
    offers: int
    providers: int
    first_observed: date
    last_observed: date
    votes: tuple[Vote, ...]
    source_ids: tuple[str, ...]
    negotiated: bool = False
    provider: str | None = None
    region: str | None = None


def price_in_force(offer: Offer, day: date) -> DatedPrice | None:
    """The last price not after the day; None before the first one and after the offer ended."""
    prices = offer.prices
    if prices and prices[-1].first_day <= day:
        latest = prices[-1]
    elif begun := bisect_right(prices, day, key=lambda price: price.first_day):
        latest = prices[begun - 1]
    else:
        return None
    return latest if latest.usd_per_gpu_hour is not None else None


def reference_price(
    offers: Sequence[Offer],
    *,
    gpu_id: str,
    as_of: date,
    market: Market,
    provider: str | None = None,
    region: str | None = None,
    negotiated: bool = False,
) -> ReferencePrice:
    """What an hour of a GPU costs on a day: each provider has one vote, whatever number of offers it lists.

    A provider votes with the median of its offers of this market that are in force on `as_of` and were
    observed in the twelve months before it. Offers with an `excluded_reason` have no vote. Markets are never
    mixed.

    Parameters
    ----------
    offers : sequence of Offer
        Every offer of the GPU, of any market.
    negotiated : bool
        The offers are contracts of one owner: a price holds until the next one, however old it is.

    Raises
    ------
    NoPriceInForce
        Nobody votes; says which markets and providers have a price on that day.
    """
    oldest = date.min if negotiated else twelve_months_before(as_of)
    seller = None if provider is None else normalised(provider)
    place = None if region is None else normalised(region)
    of_kind = (
        offer
        for offer in offers
        if offer.market == market
        and (seller is None or normalised(offer.provider) == seller)
        and (place is None or (offer.region is not None and normalised(offer.region) == place))
    )
    asked = list(_standing(of_kind, as_of, oldest))
    if not asked:
        wanted = _wanted(gpu_id, as_of, market, provider, region)
        raise _no_price(wanted, offers, [offer for offer, _, _ in _standing(offers, as_of, oldest)], market)
    ballots: dict[str, list[Decimal]] = {}
    for offer, usd, _ in asked:
        ballots.setdefault(offer.provider, []).append(usd)
    votes = tuple(
        Vote(provider=name, usd_per_gpu_hour=median(prices), offers=len(prices))
        for name, prices in sorted(ballots.items())
    )
    prices = [usd for _, usd, _ in asked]
    days = [price.first_day for _, _, price in asked]
    return ReferencePrice(
        gpu_id=gpu_id,
        market=market,
        as_of=as_of,
        usd_per_gpu_hour=median(vote.usd_per_gpu_hour for vote in votes),
        lowest_usd_per_gpu_hour=min(prices),
        highest_usd_per_gpu_hour=max(prices),
        offers=len(asked),
        providers=len(votes),
        first_observed=min(days),
        last_observed=max(days),
        votes=votes,
        source_ids=tuple(sorted({price.source_id for _, _, price in asked})),
        negotiated=negotiated,
        provider=votes[0].provider if provider is not None else None,
        region=region,
    )


def _standing(
    offers: Iterable[Offer], as_of: date, oldest: date
) -> Iterator[tuple[Offer, Decimal, DatedPrice]]:
    """Offers that count on a day, with their price then. [USD/h]"""
    for offer in offers:
        if offer.excluded_reason is not None:
            continue
        price = price_in_force(offer, as_of)
        if price is not None and price.usd_per_gpu_hour is not None and price.first_day >= oldest:
            yield offer, price.usd_per_gpu_hour, price


def api_prices_on(prices: Iterable[ApiPrice], as_of: date) -> tuple[ApiPrice, ...]:
    """The newest observation of each provider's model, in whichever spelling, not after the day.

    Undated ones are of no day.
    """
    newest: dict[tuple[str, str], tuple[date, ApiPrice]] = {}
    for price in prices:
        if price.observed is None or price.observed > as_of:
            continue
        key = (price.provider, normalised(price.provider_model_id))
        if key not in newest or newest[key][0] < price.observed:
            newest[key] = (price.observed, price)
    return tuple(price for _, (_, price) in sorted(newest.items()))


def of_one_tier(prices: Iterable[ApiPrice], prompt_tokens: float) -> tuple[ApiPrice, ...]:
    """Of each seller's tiers the one that a prompt falls in, with the context that the last of them takes."""
    return tuple(_tier_at(tiers, prompt_tokens) for tiers in _tiers(prices))


def prompts_of_tiers(prices: Iterable[ApiPrice]) -> set[int]:
    """The longest prompts of all tiers but the last of each seller. [token]"""
    ends = (price.context_limit_tokens for tiers in _tiers(prices) for price in tiers[:-1])
    return {end for end in ends if end is not None}


def contexts_taken(prices: Iterable[ApiPrice]) -> set[int]:
    """The longest contexts that sellers take, prompt and output together. [token]"""
    return {limit for tiers in _tiers(prices) if (limit := tiers[-1].context_limit_tokens) is not None}


def _tiers(prices: Iterable[ApiPrice]) -> Iterable[list[ApiPrice]]:
    """The tiers of each seller, of the shortest prompts first."""
    tiers: dict[tuple[str, str], list[ApiPrice]] = {}
    for price in prices:
        tiers.setdefault(price.sold_as, []).append(price)
    for found in tiers.values():
        found.sort(key=lambda price: price.context_limit_tokens or inf)
    return tiers.values()


def _tier_at(tiers: list[ApiPrice], prompt_tokens: float) -> ApiPrice:
    last = tiers[-1]
    reached = next((one for one in tiers if (one.context_limit_tokens or inf) >= prompt_tokens), last)
    return reached if reached is last else replace(reached, context_limit_tokens=last.context_limit_tokens)


def twelve_months_before(day: date) -> date:
    """The same day a year earlier.

    Examples
    --------
    >>> twelve_months_before(date(2028, 2, 29))
    datetime.date(2027, 2, 28)
    """
    if day.year == MINYEAR:
        return date.min
    leap_day = day.month == 2 and day.day == 29
    return day.replace(year=day.year - 1, day=28 if leap_day else day.day)


def _wanted(gpu_id: str, as_of: date, market: str, provider: str | None, region: str | None) -> str:
    seller = f" from {provider}" if provider else ""
    place = f" in {region}" if region else ""
    return f"{market} price of {gpu_id}{seller}{place} on {as_of.isoformat()}"


def _no_price(
    wanted: str, offers: Sequence[Offer], standing: Sequence[Offer], market: Market
) -> NoPriceInForce:
    markets = sorted({offer.market for offer in standing})
    providers = sorted({offer.provider for offer in standing if offer.market == market})
    regions = sorted({offer.region for offer in standing if offer.market == market and offer.region})
    days = sorted(
        price.first_day
        for offer in offers
        if offer.market == market and offer.excluded_reason is None
        for price in offer.prices
        if price.usd_per_gpu_hour is not None
    )
    there = [
        f"Markets with a price that day: {_listed(markets)}.",
        f"Providers with one in the {market} market: {_listed(providers)}.",
    ]
    if regions:
        there.append(f"Their regions: {_listed(regions)}.")
    if days:
        there.append(
            f"Its {market} prices were observed between {days[0].isoformat()} and {days[-1].isoformat()};"
            " one counts for twelve months."
        )
    if market == "owned":
        there.append("An owned GPU has no market price: what it costs follows from what you paid for it.")
    return NoPriceInForce(
        f"There is no {wanted}. {' '.join(there)}"
        " Ask for one of these, or give your own price_usd_per_gpu_hour.",
        field="market",
        details={
            "markets": markets,
            "providers": providers,
            "regions": regions,
            "first_day": days[0].isoformat() if days else None,
            "last_day": days[-1].isoformat() if days else None,
        },
    )


def _listed(names: Sequence[str]) -> str:
    if not names:
        return "none"
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more
