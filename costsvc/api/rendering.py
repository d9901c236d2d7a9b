"""From an answer to a response: its format, its validators, and 304 where the caller already has it."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import date
from hashlib import blake2b
from typing import Any, Final

from litestar import Request, Response

from costsvc import __version__
from costsvc.api.answers import Answers
from costsvc.api.auth import key_of
from costsvc.api.formats import JSON_ALONE, Presentation, negotiate, query_of, to_json
from costsvc.db.snapshot import Catalog
from costsvc.quoting.given import from_query

__all__ = ["answer", "given_in_query", "listed", "recalled", "to_json", "uncached"]

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
    words: Hashable = None,
) -> Response[bytes]:
    """The response to a read: `compute` is called only where neither the caller nor the service has the answer yet.

    Parameters
    ----------
    shown : Presentation or None
        How the answer is shown; None for what is JSON alone.
    variant : str
        What else the answer depends on, beside the catalog, the day and the query.
    words : hashable, optional
        What `recalled` will know the answer by.
    """
    shown = shown or Presentation(
        format=negotiate(request.headers.get("accept")), view=JSON_ALONE, field=None, given=given
    )
    path, content_type = request.scope["path"], shown.format.content_type
    asked = (path, sorted(given.items()), content_type, shown.field)
    tag = _entity_tag(catalog.fingerprint, day.isoformat(), asked, variant)
    if words is not None:
        _answers(request).remember(words, tag, content_type)
    return _response(request, catalog, tag, content_type, lambda: shown.rendered(compute()))


def recalled(request: Request[Any, Any, Any], catalog: Catalog, words: Hashable) -> Response[bytes] | None:
    """The response to a read that was answered before in the very same words; None where it was not.

    Parameters
    ----------
    words : hashable
        All that the answer depends on, the catalog's fingerprint among it.
    """
    asked = _answers(request).asked(words)
    if asked is None:
        return None
    tag, content_type = asked
    body = _answers(request).held(tag)
    return None if body is None else _response(request, catalog, tag, content_type, lambda: body)


def _response(
    request: Request[Any, Any, Any],
    catalog: Catalog,
    tag: str,
    content_type: str,
    make: Callable[[], bytes],
) -> Response[bytes]:
    headers = {
        "ETag": f"W/{tag}",
        "Cache-Control": f"{'private' if _is_keyed(request) else 'public'}, max-age={MAX_AGE_S}",
        **revision_headers(catalog),
    }
    named = request.headers.get("if-none-match")
    if named and tag in {one.strip().removeprefix("W/") for one in named.split(",")}:
        return Response(b"", status_code=304, media_type=content_type, headers=headers)
    return Response(_answers(request).body(tag, make), media_type=content_type, headers=headers)


def _answers(request: Request[Any, Any, Any]) -> Answers:
    answers: Answers = request.app.state.answers
    return answers


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
