"""From an answer to a response: its format, its validators, and 304 where the caller already has it."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from hashlib import blake2b
from typing import Any, Final

from litestar import Request, Response

from costsvc import __version__
from costsvc.api.auth import key_of
from costsvc.api.formats import JSON_ALONE, Presentation, negotiate, query_of, to_json
from costsvc.db.snapshot import Catalog
from costsvc.quoting.given import from_query

__all__ = ["answer", "given_in_query", "listed", "to_json", "uncached"]

MAX_AGE_S: Final = 300
# A cache between must not hand the public answer to who shows a key: that one may see other prices.
VARY: Final = "Accept, Authorization, X-API-Key"


def given_in_query(request: Request[Any, Any, Any]) -> dict[str, str]:
    """The query's parameters, each at most once."""
    return from_query(query_of(request))


def listed(catalog: Catalog, day: date, items: Sequence[object]) -> dict[str, object]:
    """Rows with the day and the catalog they are of."""
    return {"as_of": day, "catalog_revision": catalog.revision, "items": items}


def answer(
    request: Request[Any, Any, Any],
    catalog: Catalog,
    *,
    day: date,
    given: Mapping[str, str],
    compute: Callable[[], object],
    shown: Presentation | None = None,
    variant: str = "",
) -> Response[bytes]:
    """The response to a read: `compute` is called only where the caller has not got the answer yet.

    Parameters
    ----------
    shown : Presentation or None
        How the answer is shown; None for what is JSON alone.
    variant : str
        What else the answer depends on, beside the catalog, the day and the query.
    """
    shown = shown or Presentation(
        format=negotiate(request.headers.get("accept")), view=JSON_ALONE, field=None, given=given
    )
    path, content_type = request.scope["path"], shown.format.content_type
    asked = (path, sorted(given.items()), content_type, shown.field)
    tag = _entity_tag(catalog.fingerprint, day.isoformat(), asked, variant)
    headers = {
        "ETag": f"W/{tag}",
        "Cache-Control": f"{'private' if _is_keyed(request) else 'public'}, max-age={MAX_AGE_S}",
        **revision_headers(catalog),
    }
    held = request.headers.get("if-none-match")
    if held and tag in {one.strip().removeprefix("W/") for one in held.split(",")}:
        return Response(b"", status_code=304, media_type=content_type, headers=headers)
    return Response(shown.rendered(compute()), media_type=content_type, headers=headers)


def uncached(
    request: Request[Any, Any, Any], catalog: Catalog, content: object, *, status: int = 200
) -> Response[bytes]:
    """The response to a POST."""
    shown = negotiate(request.headers.get("accept"))
    headers = {"Cache-Control": "no-store", **revision_headers(catalog)}
    return Response(
        shown.render(content, JSON_ALONE, None),
        status_code=status,
        media_type=shown.content_type,
        headers=headers,
    )


def revision_headers(catalog: Catalog) -> dict[str, str]:
    private = {} if catalog.private is None else {"X-Private-Revision": str(catalog.private_revision)}
    return {"Vary": VARY, "X-Catalog-Revision": str(catalog.revision), **private}


def _entity_tag(*depends_on: object) -> str:
    seen = repr((__version__, *depends_on))
    return f'"{blake2b(seen.encode(errors="replace"), digest_size=12).hexdigest()}"'


def _is_keyed(request: Request[Any, Any, Any]) -> bool:
    return key_of(request.scope) is not None
