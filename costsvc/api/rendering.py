"""From an answer to a response: its format, its validators, and 304 where the caller already has it."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from hashlib import blake2b
from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException

from costsvc import __version__
from costsvc.db.snapshot import Catalog
from costsvc.quoting.given import from_query

MAX_AGE_S: Final = 300

# Taken once per revision, and forgotten with it.
_FINGERPRINTS: Final[WeakKeyDictionary[Catalog, str]] = WeakKeyDictionary()


def to_json(answer: object) -> bytes:
    """JSON of an answer; a number that is not finite is a fault of ours and never leaves as null."""
    plain = msgspec.to_builtins(answer)
    return json.dumps(plain, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()


RENDERERS: Final[Mapping[str, Callable[[object], bytes]]] = {"application/json": to_json}


def negotiate(accept: str | None) -> str:
    """The media type to answer with: of those that an Accept header allows, the first that is rendered."""
    if not accept or accept == "*/*":
        return next(iter(RENDERERS))
    ranges = dict(map(_range, accept.split(",")))
    best = max(RENDERERS, key=lambda media_type: _quality(ranges, media_type))
    if not _quality(ranges, best) > 0:
        raise HTTPException(
            status_code=406, detail=f"Accept is '{accept}'; choose one of {', '.join(RENDERERS)}, or */*."
        )
    return best


def given_in_query(request: Request[Any, Any, Any]) -> dict[str, str]:
    """The query's parameters, each at most once."""
    return from_query(request.scope["query_string"].decode(errors="replace"))


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
    variant: str = "",
) -> Response[bytes]:
    """The response to a read: `compute` is called only where the caller has not got the answer yet.

    Parameters
    ----------
    variant : str
        What else the answer depends on, beside the catalog, the day and the query.
    """
    media_type = negotiate(request.headers.get("accept"))
    path = request.scope["path"]
    tag = _entity_tag(
        _fingerprint(catalog), day.isoformat(), path, sorted(given.items()), media_type, variant
    )
    headers = {
        "ETag": f"W/{tag}",
        "Cache-Control": f"{'private' if _is_keyed(request) else 'public'}, max-age={MAX_AGE_S}",
        **_headers(catalog),
    }
    held = request.headers.get("if-none-match")
    if held and tag in {one.strip().removeprefix("W/") for one in held.split(",")}:
        return Response(b"", status_code=304, media_type=media_type, headers=headers)
    return Response(RENDERERS[media_type](compute()), media_type=media_type, headers=headers)


def uncached(
    request: Request[Any, Any, Any], catalog: Catalog, content: object, *, status: int = 200
) -> Response[bytes]:
    """The response to a POST."""
    media_type = negotiate(request.headers.get("accept"))
    headers = {"Cache-Control": "no-store", **_headers(catalog)}
    return Response(
        RENDERERS[media_type](content), status_code=status, media_type=media_type, headers=headers
    )


def _headers(catalog: Catalog) -> dict[str, str]:
    return {"Vary": "Accept", "X-Catalog-Revision": str(catalog.revision)}


def _fingerprint(catalog: Catalog) -> str:
    """What a catalog holds, in brief: two databases may each have a revision 1."""
    if catalog not in _FINGERPRINTS:
        seen = repr((catalog.revision, catalog.content))
        _FINGERPRINTS[catalog] = blake2b(seen.encode(), digest_size=12).hexdigest()
    return _FINGERPRINTS[catalog]


def _entity_tag(*depends_on: object) -> str:
    seen = repr((__version__, *depends_on))
    return f'"{blake2b(seen.encode(errors="replace"), digest_size=12).hexdigest()}"'


def _is_keyed(request: Request[Any, Any, Any]) -> bool:
    headers = request.headers
    return (
        "authorization" in headers or "x-api-key" in headers or b"api_key=" in request.scope["query_string"]
    )


def _range(text: str) -> tuple[str, float]:
    name, *parameters = (part.strip().lower() for part in text.split(";"))
    quality = next((part[2:] for part in parameters if part.startswith("q=")), "1")
    try:
        return name, float(quality)
    except ValueError:
        return name, 1.0


def _quality(ranges: Mapping[str, float], media_type: str) -> float:
    """The quality of the most specific range that covers a media type."""
    main = media_type.partition("/")[0]
    return next((ranges[name] for name in (media_type, f"{main}/*", "*/*") if name in ranges), 0.0)
