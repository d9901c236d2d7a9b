"""Prices that an owner negotiated: checked as any posted offer is, and kept apart from the catalog."""

from collections import Counter
from typing import Final

from costsvc.db.entries import PrivateOffer
from costsvc.db.private_prices import Change
from costsvc.db.snapshot import Catalog
from costsvc.errors import InvalidRequest, NotInCatalog
from costsvc.quoting.posting import (
    PostedOffer,
    PostedPrices,
    offer_of,
    posted_id,
    priced,
    prices_of,
    there_already,
)

PRIVATE: Final = "private"


def is_negotiated(id: str) -> bool:
    """Whether an id is of a negotiated offer; no other one begins so."""
    return id.startswith(f"{PRIVATE}/")


def negotiated_id(catalog: Catalog, posted: PostedOffer) -> str:
    """What a new negotiated offer is called."""
    return posted_id(catalog, posted, below=PRIVATE)


def new_offer(catalog: Catalog, posted: PostedOffer) -> Change:
    """An offer with its first prices.

    Raises
    ------
    NotInCatalog
        The GPU is unknown.
    InvalidRequest
        When it is stored: the owner has such an offer already.
    """
    id = negotiated_id(catalog, posted)
    offer, source = offer_of(catalog, posted, id)

    def change(before: PrivateOffer | None) -> PrivateOffer:
        if before is not None:
            raise there_already(id)
        return PrivateOffer(offer=offer, sources=(source,))

    return change


def more_prices(id: str, posted: PostedPrices) -> Change:
    """More prices of an offer; one of a day that has one already corrects it, for there is no file to correct.

    Raises
    ------
    InvalidRequest
        Two of the prices are of one day.
    NotInCatalog
        When it is stored: the owner has no such offer.
    """
    times = Counter(price.first_day for price in posted.prices)
    if twice := sorted(day.isoformat() for day, count in times.items() if count > 1):
        raise InvalidRequest(
            f"Two prices are from {', '.join(twice)}. One day has one price.", field="prices"
        )

    def change(before: PrivateOffer | None) -> PrivateOffer:
        if before is None:
            raise NotInCatalog("offer", id, [], listed_at="/prices")
        added, source = prices_of(before.offer, posted)
        by_day = {price.first_day: price for price in (*before.offer.prices, *added)}
        sources = {one.id: one for one in (*before.sources, source)}
        used = {price.source_id for price in by_day.values()}
        return PrivateOffer(
            offer=priced(before.offer, by_day.values()),
            sources=tuple(sources[name] for name in sorted(used)),
        )

    return change
