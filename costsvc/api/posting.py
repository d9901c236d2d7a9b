"""Writes to the catalog: the holder of a key adds offers and prices, each a new revision."""

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

from litestar import Request, Response, post
from litestar.concurrency import sync_to_thread
from litestar.di import NamedDependency
from litestar.params import FromPath

from costsvc.api.auth import needs
from costsvc.api.bodies import json_object
from costsvc.api.openapi import body_of, documented
from costsvc.api.rendering import uncached
from costsvc.api.service import Service
from costsvc.db.keys import ApiKey
from costsvc.db.snapshot import Catalog
from costsvc.quoting.listing.prices import find_offer
from costsvc.quoting.posting import (
    PostedOffer,
    PostedPrices,
    parse_body,
    posted_id,
    with_offer,
    with_prices,
)
from costsvc.quoting.publishing import Change, publish

_WRITE_PROBLEMS: Final = (401, 403, 422)


@post(
    "/prices",
    summary="A new offer (key of scope catalog-write)",
    dependencies={"author": needs("catalog-write")},
    operation_class=documented(
        "Posted", body=body_of(PostedOffer), more_problems=_WRITE_PROBLEMS, success=201
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
    await _publish(request, lambda catalog: with_offer(catalog, posted), author, service)
    return _created(request, service.catalog, lambda catalog: posted_id(catalog, posted))


@post(
    "/prices/{id:path}",
    summary="More prices of an offer (key of scope catalog-write)",
    dependencies={"author": needs("catalog-write")},
    operation_class=documented(
        "Posted", body=body_of(PostedPrices), more_problems=_WRITE_PROBLEMS, success=201
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
    await _publish(request, lambda catalog: with_prices(catalog, offer, posted), author, service)
    return _created(request, service.catalog, lambda catalog: find_offer(catalog, offer).id)


async def _publish(
    request: Request[Any, Any, Any],
    change: Change,
    author: ApiKey,
    service: Service,
) -> None:
    """Store a changed catalog and take it at once, so that the next read shows it."""

    def store() -> None:
        publish(
            service.repository,
            change,
            author=f"key {author.id} ({author.label})",
            note=f"{request.method} {request.scope['path']}",
        )
        service.snapshots.refresh()

    await sync_to_thread(store)


def _created(
    request: Request[Any, Any, Any], catalog: Catalog, named: Callable[[Catalog], str]
) -> Response[bytes]:
    id = named(catalog)
    response = uncached(request, catalog, {"id": id, "catalog_revision": catalog.revision}, status=201)
    response.headers["Location"] = f"/prices/{quote(id)}"
    return response
