"""Traffic profiles of the catalog, and new ones."""

from typing import Any, Final
from urllib.parse import quote

from litestar import Request, Response, post, route
from litestar.concurrency import sync_to_thread
from litestar.di import NamedDependency
from litestar.params import FromPath

from costsvc.api.auth import needs
from costsvc.api.bodies import json_object
from costsvc.api.openapi import READ, body_of, documented, query_parameters
from costsvc.api.rendering import answer, given_in_query, listed, uncached
from costsvc.api.service import Service
from costsvc.db.keys import ApiKey
from costsvc.quoting.given import parse_filter, refuse_unknown
from costsvc.quoting.listing.common import Day
from costsvc.quoting.listing.profiles import ProfileFilter, list_profiles, show_profile
from costsvc.quoting.posting import parse_body
from costsvc.quoting.profiles import PostedProfile, with_profile
from costsvc.quoting.publishing import publish

_WRITE_PROBLEMS: Final = (401, 403, 422)


@route(
    "/profiles",
    http_method=READ,
    sync_to_thread=False,
    summary="Traffic profiles",
    operation_class=documented("Profiles", parameters=query_parameters(ProfileFilter)),
)
def get_profiles(request: Request[Any, Any, Any], service: NamedDependency[Service]) -> Response[bytes]:
    """The profiles that a quote may name."""
    given = given_in_query(request)
    wanted = parse_filter(ProfileFilter, given)
    day, catalog = wanted.as_of or service.today(), service.catalog
    return answer(
        request,
        catalog,
        day=day,
        given=given,
        compute=lambda: listed(catalog, day, list_profiles(catalog, wanted)),
    )


@route(
    "/profiles/{id:path}",
    http_method=READ,
    sync_to_thread=False,
    summary="A traffic profile and its sources",
    operation_class=documented("Profile", parameters=query_parameters(Day)),
)
def get_profile(
    request: Request[Any, Any, Any], id: FromPath[str], service: NamedDependency[Service]
) -> Response[bytes]:
    """One profile, by id or alias."""
    given = given_in_query(request)
    day, catalog = parse_filter(Day, given).as_of or service.today(), service.catalog
    return answer(
        request, catalog, day=day, given=given, compute=lambda: show_profile(catalog, id.removeprefix("/"))
    )


@post(
    "/profiles",
    summary="A new traffic profile (key of scope catalog-write)",
    dependencies={"author": needs("catalog-write")},
    operation_class=documented(
        "Posted", body=body_of(PostedProfile), more_problems=_WRITE_PROBLEMS, success=201
    ),
)
async def post_profile(
    request: Request[Any, Any, Any], author: NamedDependency[ApiKey], service: NamedDependency[Service]
) -> Response[bytes]:
    """Add a traffic profile; one that is there never changes."""
    refuse_unknown(given_in_query(request), ())
    await json_object(request)
    posted = parse_body(PostedProfile, await request.body())

    def store() -> None:
        author_text = f"key {author.id} ({author.label})"
        publish(
            service.repository,
            lambda catalog: with_profile(catalog, posted),
            author=author_text,
            note=f"{request.method} {request.scope['path']}",
        )
        service.snapshots.refresh()

    await sync_to_thread(store)
    catalog = service.catalog
    made = {"id": posted.id, "catalog_revision": catalog.revision}
    response = uncached(request, catalog, made, status=201)
    response.headers["Location"] = f"/profiles/{quote(posted.id)}"
    return response
