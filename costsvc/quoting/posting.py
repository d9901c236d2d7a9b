"""Prices that arrive by a call instead of a file: checked by the files' schema, kept beside what files say.

What was posted is known by its source, so that loading the files anew does not lose it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Annotated, Final, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from costsvc.db.entries import CatalogContent, DatedPrice, Offer, Source
from costsvc.db.names import normalised
from costsvc.db.snapshot import Catalog
from costsvc.errors import InvalidRequest, NotInCatalog
from costsvc.ingest.entry import SourceFields, Strict, Text
from costsvc.ingest.faults import invalid_request
from costsvc.ingest.prices import DatedPriceFields, OfferFields, in_id
from costsvc.quoting.importing import keeping_posted_models
from costsvc.quoting.listing.common import one_of
from costsvc.quoting.listing.prices import find_offer
from costsvc.quoting.profiles import keeping_posted_profiles

POSTED: Final = "posted"
_DIGEST_BYTES: Final = 4

Body = TypeVar("Body", bound=BaseModel)


class PostedPrice(DatedPriceFields):
    """A price from its first day on; where it was read stands beside the prices, once."""

    source: Literal["posted"] = POSTED


class PostedPrices(Strict):
    """More prices of an offer that exists."""

    prices: Annotated[list[PostedPrice], Field(min_length=1)]
    source: SourceFields


class PostedOffer(OfferFields):
    """A new offer."""

    gpu: Text
    provider: Text
    prices: Annotated[list[PostedPrice], Field(min_length=1)]  # type: ignore[assignment]
    source: SourceFields
    private: Annotated[bool, Field(strict=True)] = Field(
        False, description="Negotiated: seen by, and used in quotes of, keys of this key's owner alone."
    )


def parse_body(kind: type[Body], body: bytes) -> Body:
    """Read a body by its schema, from JSON, so that days may be written as texts."""
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        raise invalid_request(error, kind) from error


def posted_id(catalog: Catalog, posted: PostedOffer, *, below: str = POSTED) -> str:
    """What a new offer is called. Where an id cannot hold its words, such as `+1` and `-1`, a digest does."""
    named = posted.model_copy(update={"gpu": catalog.gpu(posted.gpu).id})
    provider = _provider(catalog, posted.provider)
    words = [normalised(word) for word in named.words(provider)]
    held = [normalised(in_id(word)) for word in words]
    digest = blake2b("/".join(words).encode(), digest_size=_DIGEST_BYTES).hexdigest()
    return f"{below}/{named.slug(provider)}{'' if held == words else f'/{digest}'}"


def with_offer(catalog: Catalog, posted: PostedOffer) -> CatalogContent:
    """The catalog with a new offer.

    Raises
    ------
    NotInCatalog
        The GPU is unknown.
    InvalidRequest
        There is such an offer already.
    """
    id = posted_id(catalog, posted)
    if any(offer.id == id for offer in catalog.content.offers):
        raise there_already(id)
    return _with(catalog.content, *offer_of(catalog, posted, id))


def there_already(id: str) -> InvalidRequest:
    """Why an offer cannot be made once more."""
    return InvalidRequest(
        f"There is an offer '{id}' already. POST /prices/{id} adds a price to it.", field="provider"
    )


def offer_of(catalog: Catalog, posted: PostedOffer, id: str) -> tuple[Offer, Source]:
    """A new offer as stored, and the source of its prices."""
    source = _source(posted.source)
    named = posted.model_copy(update={"gpu": catalog.gpu(posted.gpu).id})
    return _sourced(named.record(id, _provider(catalog, posted.provider)), source), source


def prices_of(offer: Offer, posted: PostedPrices) -> tuple[list[DatedPrice], Source]:
    """More prices of an offer as stored, and their source."""
    source = _source(posted.source)
    gpus = offer.gpus_per_instance or 1
    added = [
        DatedPrice(
            first_day=price.first_day, usd_per_gpu_hour=price.usd_of_one_gpu(gpus), source_id=source.id
        )
        for price in posted.prices
    ]
    return added, source


def with_prices(catalog: Catalog, id: str, posted: PostedPrices) -> CatalogContent:
    """The catalog with more prices of an offer.

    Raises
    ------
    NotInCatalog
        There is no such offer.
    InvalidRequest
        The offer has a price from one of the days.
    """
    offer = find_offer(catalog, id)
    added, source = prices_of(offer, posted)
    days = [price.first_day for price in (*offer.prices, *added)]
    if twice := sorted({day.isoformat() for day in days if days.count(day) > 1}):
        raise InvalidRequest(
            f"'{offer.id}' would have two prices from {', '.join(twice)}. One day has one price: choose "
            "another first_day; a price that was wrong is corrected in the catalog's files.",
            field="prices",
        )
    return _with(catalog.content, priced(offer, (*offer.prices, *added)), source)


def keeping_posted(files: CatalogContent, stored: CatalogContent) -> CatalogContent:
    """What the files say, with the posted prices, profiles and models of the stored catalog.

    A price that the files meanwhile give for the same day replaces the posted one; an offer whose GPU left
    the files leaves with it.
    """
    gpus = {gpu.id for gpu in files.gpus}
    offers = {offer.id: offer for offer in files.offers}
    for offer in stored.offers:
        posted = [price for price in offer.prices if _is_posted(price.source_id)]
        if not posted or offer.gpu_id not in gpus:
            continue
        known = offers.get(offer.id)
        if known is None and not offer.id.startswith(f"{POSTED}/"):
            continue
        base = known or replace(offer, prices=())
        days = {price.first_day for price in base.prices}
        kept = [price for price in posted if price.first_day not in days]
        offers[offer.id] = priced(base, (*base.prices, *kept))
    used = {price.source_id for offer in offers.values() for price in offer.prices}
    posted_sources = [one for one in stored.sources if _is_posted(one.id) and one.id in used]
    whole = keeping_posted_models(keeping_posted_profiles(files, stored), stored)
    return replace(
        whole,
        offers=_by_id(tuple(offers.values())),
        sources=_by_id((*whole.sources, *posted_sources)),
    )


def _provider(catalog: Catalog, text: str) -> str:
    """The name as the catalog spells it; one that it lacks is a new provider."""
    try:
        return one_of("provider", text, catalog.providers, "/prices") or text
    except NotInCatalog:
        return text


def _source(fields: SourceFields) -> Source:
    digest = blake2b(fields.model_dump_json().encode(), digest_size=8).hexdigest()
    return fields.record(f"{POSTED}/{digest}")


def _is_posted(source_id: str) -> bool:
    return source_id.startswith(f"{POSTED}/")


def _sourced(offer: Offer, source: Source) -> Offer:
    return replace(offer, prices=tuple(replace(price, source_id=source.id) for price in offer.prices))


def priced(offer: Offer, prices: Iterable[DatedPrice]) -> Offer:
    """An offer with these prices, in order of their days."""
    return replace(offer, prices=tuple(sorted(prices, key=lambda price: price.first_day)))


def _with(content: CatalogContent, offer: Offer, source: Source) -> CatalogContent:
    others = (one for one in content.offers if one.id != offer.id)
    sources = (one for one in content.sources if one.id != source.id)
    return replace(content, offers=_by_id((*others, offer)), sources=_by_id((*sources, source)))


Named = TypeVar("Named", Offer, Source)


def _by_id(entries: Sequence[Named]) -> tuple[Named, ...]:
    return tuple(sorted(entries, key=lambda entry: entry.id))
