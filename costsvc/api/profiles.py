"""Traffic profiles of the catalog, and new ones."""

from typing import Any

from litestar import Request, Response, post
from litestar.di import NamedDependency

from costsvc.api.auth import needs
from costsvc.api.bodies import json_object
from costsvc.api.lists import entry_of, list_of
from costsvc.api.openapi import body_of, documented
from costsvc.api.rendering import given_in_query
from costsvc.api.service import Service
from costsvc.api.writes import WRITE_PROBLEMS, created, publish_at_once
from costsvc.db.keys import ApiKey
from costsvc.quoting.given import refuse_unknown
from costsvc.quoting.listing.profiles import ProfileFilter, list_profiles, show_profile
from costsvc.quoting.posting import parse_body
from costsvc.quoting.profiles import PostedProfile, with_profile
from costsvc.quoting.tables.listings import PROFILES

get_profiles = list_of(
    "/profiles",
    lambda catalog, wanted, _day: list_profiles(catalog, wanted),
    wanted=ProfileFilter,
    columns=PROFILES,
    answers="Profiles",
    summary="Traffic profiles",
)
get_profile = entry_of(
    "/profiles",
    lambda catalog, id, _day: show_profile(catalog, id),
    answers="Profile",
    summary="A traffic profile and its sources",
)


@post(
    "/profiles",
    summary="A new traffic profile (key of scope catalog-write)",
    dependencies={"author": needs("catalog-write")},
    operation_class=documented(
        "Posted", body=body_of(PostedProfile), more_problems=WRITE_PROBLEMS, success=201
    ),
)
async def post_profile(
    request: Request[Any, Any, Any], author: NamedDependency[ApiKey], service: NamedDependency[Service]
) -> Response[bytes]:
    """Add a traffic profile; one that is there never changes."""
    refuse_unknown(given_in_query(request), ())
    await json_object(request)
    posted = parse_body(PostedProfile, await request.body())
    await publish_at_once(request, lambda catalog: with_profile(catalog, posted), author, service)
    catalog = service.catalog
    made = {"id": posted.id, "catalog_revision": catalog.revision}
    return created(request, catalog, "/profiles", posted.id, made)
