"""From an answer to a response: its format, its validators, and 304 where the caller already has it."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from hashlib import blake2b
from typing import Any, Final

from litestar import Request, Response

from costsvc import __version__
from costsvc.api.answers import Answers, Known, is_named
from costsvc.api.auth import key_of
from costsvc.api.formats import JSON_ALONE, Presentation, negotiate, query_of
from costsvc.api.recall import words_of
from costsvc.api.sent import accepted, named_tags
from costsvc.db.snapshot import Catalog
from costsvc.quoting.given import from_query

__all__ = ["answer", "given_in_query", "listed", "uncached"]

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
        format=negotiate(accepted(request.scope)), view=JSON_ALONE, field=None, given=given
    )
    scope, answers = request.scope, _answers(request)
    asked = (scope["path"], sorted(given.items()), shown.format.content_type, shown.field)
    tag = _entity_tag(catalog.fingerprint, day.isoformat(), asked, is_stale)
    known = _known(tag, catalog, shown.format.content_type, is_keyed=key_of(scope) is not None)
    words = words_of(scope)
    if words is not None and (words.catalog, words.is_stale) == (catalog.fingerprint, is_stale):
        answers.remember(words, known)
    if is_named(tag, named_tags(scope)):
        return known.unchanged()
    return known.with_body(answers.body(tag, lambda: shown.rendered(compute())))


def _known(tag: str, catalog: Catalog, content_type: str, *, is_keyed: bool) -> Known:
    """The headers of an answer as they leave."""
    headers = {
        "ETag": f"W/{tag}",
        "Cache-Control": f"{'private' if is_keyed else 'public'}, max-age={MAX_AGE_S}",
        **revision_headers(catalog),
    }
    encoded = tuple([(name.lower().encode(), value.encode()) for name, value in headers.items()])
    charset = "; charset=utf-8" if content_type.startswith("text/") else ""
    return Known(tag, encoded, f"{content_type}{charset}".encode())


def _answers(request: Request[Any, Any, Any]) -> Answers:
    answers: Answers = request.app.state.answers
    return answers


def uncached(
    request: Request[Any, Any, Any], catalog: Catalog, content: object, *, status: int = 200
) -> Response[bytes]:
    """The response to a POST."""
    shown = negotiate(accepted(request.scope))
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
