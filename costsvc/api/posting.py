"""Writes of prices: new offers and prices, of everybody's catalog or of the key's owner alone."""

from typing import Any

from litestar import Request, Response, post
from litestar.concurrency import sync_to_thread
from litestar.di import NamedDependency
from litestar.params import FromPath

from costsvc.api.auth import needs, owner_of
from costsvc.api.bodies import json_object
from costsvc.api.openapi import body_of, documented
from costsvc.api.service import Service
from costsvc.api.writes import WRITE_PROBLEMS, act, author_text, created, publish_at_once
from costsvc.db.keys import ApiKey
from costsvc.db.private_prices import Change as PrivateChange
from costsvc.db.snapshot import Catalog
from costsvc.quoting.listing.prices import find_offer
from costsvc.quoting.negotiated import is_negotiated, more_prices, negotiated_id, new_offer
from costsvc.quoting.posting import (
    PostedOffer,
    PostedPrices,
    parse_body,
    posted_id,
    with_offer,
    with_prices,
)


@post(
    "/prices",
    summary="A new offer, for everybody or negotiated (key of scope catalog-write)",
    dependencies={"author": needs("catalog-write")},
    operation_class=documented(
        "Posted", body=body_of(PostedOffer), more_problems=WRITE_PROBLEMS, success=201
    ),
)
async def post_offer(
    request: Request[Any, Any, Any],
    author: NamedDependency[ApiKey],
    service: NamedDependency[Service],
) -> Response[bytes]:
    """Add an offer with its first prices."""
    await json_object(request)
    posted = parse_body(PostedOffer, await request.body())
    if posted.private:
        id = negotiated_id(service.catalog, posted)
        return await _negotiate(request, id, new_offer(service.catalog, posted), author, service)
    await publish_at_once(request, lambda catalog: with_offer(catalog, posted), author, service)
    return _created(request, service.catalog, posted_id(service.catalog, posted))


@post(
    "/prices/{id:path}",
    summary="More prices of an offer (key of scope catalog-write)",
    dependencies={"author": needs("catalog-write")},
    operation_class=documented(
        "Posted", body=body_of(PostedPrices), more_problems=WRITE_PROBLEMS, success=201
    ),
)
async def post_prices(
    request: Request[Any, Any, Any],
    id: FromPath[str],
    author: NamedDependency[ApiKey],
    service: NamedDependency[Service],
) -> Response[bytes]:
    """Add dated prices to an offer."""
    await json_object(request)
    posted = parse_body(PostedPrices, await request.body())
    offer = id.removeprefix("/")
    if is_negotiated(offer):
        # It may have been made by another replica a moment ago.
        await sync_to_thread(service.snapshots.refresh)
        offer = find_offer(service.snapshots.seen_by(owner_of(author)), offer).id
        return await _negotiate(request, offer, more_prices(offer, posted), author, service)
    await publish_at_once(request, lambda catalog: with_prices(catalog, offer, posted), author, service)
    return _created(request, service.catalog, find_offer(service.catalog, offer).id)


async def _negotiate(
    request: Request[Any, Any, Any],
    id: str,
    change: PrivateChange,
    author: ApiKey,
    service: Service,
) -> Response[bytes]:
    """Store what the key's owner negotiated; the catalog that others see, its revision included, stays."""
    owner = owner_of(author)

    def store() -> tuple[Catalog, int]:
        number = service.private.store(owner, id, change, author=author_text(author), action=act(request))
        service.snapshots.refresh()
        return service.snapshots.seen_by(owner), number

    catalog, number = await sync_to_thread(store)
    return _created(request, catalog, id, private_revision=number)


def _created(request: Request[Any, Any, Any], catalog: Catalog, id: str, **more: int) -> Response[bytes]:
    return created(request, catalog, "/prices", id, {"id": id, "catalog_revision": catalog.revision, **more})
