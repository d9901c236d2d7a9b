"""From an answer to a response: its format, its validators, and 304 where the caller already has it."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from hashlib import blake2b
from typing import Any, Final

from litestar import Request, Response

from costsvc import __version__
from costsvc.api.answers import Answers, Known, is_named
from costsvc.api.auth import key_of
from costsvc.api.formats import JSON_ALONE, Presentation, negotiate, query_of, to_json
from costsvc.api.recall import words_of
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
    is_stale: bool = False,
) -> Response[bytes]:
    """The response to a read: `compute` is called only where neither the caller nor the service has the answer yet.

    Parameters
    ----------
    shown : Presentation or None
        How the answer is shown; None for what is JSON alone.
    is_stale : bool
        Whether the answer says that the catalog may be behind.
    """
    shown = shown or Presentation(
        format=negotiate(request.headers.get("accept")), view=JSON_ALONE, field=None, given=given
    )
    path, content_type = request.scope["path"], shown.format.content_type
    asked = (path, sorted(given.items()), content_type, shown.field)
    tag = _entity_tag(catalog.fingerprint, day.isoformat(), asked, is_stale)
    headers = {
        "ETag": f"W/{tag}",
        "Cache-Control": f"{'private' if _is_keyed(request) else 'public'}, max-age={MAX_AGE_S}",
        **revision_headers(catalog),
    }
    words = words_of(request.scope)
    if words is not None and (words.catalog, words.is_stale) == (catalog.fingerprint, is_stale):
        _answers(request).remember(words, _known(tag, headers, content_type))
    if is_named(tag, request.headers.get("if-none-match", "")):
        return Response(b"", status_code=304, media_type=content_type, headers=headers)
    body = _answers(request).body(tag, lambda: shown.rendered(compute()))
    return Response(body, media_type=content_type, headers=headers)


def _known(tag: str, headers: Mapping[str, str], content_type: str) -> Known:
    """Headers as they leave, which the framework would else write."""
    encoded = tuple((name.lower().encode(), value.encode()) for name, value in headers.items())
    charset = "; charset=utf-8" if content_type.startswith("text/") else ""
    return Known(tag, encoded, f"{content_type}{charset}".encode())


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
