"""Errors meet HTTP here and nowhere else: every one leaves as `application/problem+json` (RFC 9457)."""

import json
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from inspect import cleandoc
from math import isfinite
from typing import Any, Final
from urllib.parse import quote

from litestar import Request, Response
from litestar.exceptions import HTTPException

from costsvc import errors
from costsvc.api.formats import ERROR_MARK, error_as_text
from costsvc.api.redaction import redacted
from costsvc.api.request_id import request_id_of
from costsvc.errors import CostsvcError

MEDIA_TYPE: Final = "application/problem+json"

_LOG = logging.getLogger(__name__)

_STATUS: Final[Mapping[type[CostsvcError], int]] = {
    errors.InvalidRequest: 400,
    errors.NotAuthorized: 401,
    errors.NotInCatalog: 404,
    errors.IdempotencyConflict: 409,
    errors.ConfigNotUnderstood: 422,
    errors.Infeasible: 422,
    errors.RateLimited: 429,
    # What was loaded was checked before, so this is never the caller's doing.
    errors.InvalidCatalogFile: 500,
    errors.Unavailable: 503,
    CostsvcError: 500,
}


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of problem: its page is `/problems/{slug}`."""

    slug: str
    title: str
    status: int
    meaning: str


def _spaced(name: str, separator: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", separator, name)


def _kind_of_class(kind: type[CostsvcError]) -> Kind:
    status = next(_STATUS[base] for base in kind.__mro__ if base in _STATUS)
    title = _spaced(kind.__name__, " ").capitalize().replace("Slo", "SLO")
    return Kind(_spaced(kind.__name__, "-").lower(), title, status, cleandoc(kind.__doc__ or ""))


def _tree(kind: type[CostsvcError]) -> list[type[CostsvcError]]:
    return [kind, *(deeper for child in kind.__subclasses__() for deeper in _tree(child))]


_OF_CLASS: Final = {
    kind: _kind_of_class(kind) for child in CostsvcError.__subclasses__() for kind in _tree(child)
}

# What HTTP itself refuses, before any use case is asked.
_OF_STATUS: Final = {
    kind.status: kind
    for kind in (
        Kind("bad-request", "Bad request", 400, "The request is not HTTP as the service understands it."),
        Kind(
            "forbidden",
            "Forbidden",
            403,
            "The key is valid, but its scope does not allow this. Use another one.",
        ),
        Kind("no-such-page", "No such page", 404, "Nothing lives at this path. /docs lists what does."),
        Kind(
            "method-not-allowed",
            "Method not allowed",
            405,
            "The Allow header lists the methods of this path.",
        ),
        Kind(
            "not-acceptable", "Not acceptable", 406, "The Accept header allows none of the formats there are."
        ),
        Kind(
            "slow-client",
            "Slow client",
            408,
            "The body did not arrive in time, and the connection is closed.",
        ),
        Kind("body-too-large", "Body too large", 413, "The body is longer than the service reads."),
        Kind("unsupported-media-type", "Unsupported media type", 415, "Bodies are read as application/json."),
        Kind(
            "internal-error",
            "Internal error",
            500,
            "A fault of the service, not of the request. Nothing but a request id is shown; the operator "
            "finds the reason in the log under that id.",
        ),
    )
}

KINDS: Final[Mapping[str, Kind]] = {kind.slug: kind for kind in (*_OF_CLASS.values(), *_OF_STATUS.values())}


def known(request: Request[Any, Any, Any], error: CostsvcError) -> Response[bytes]:
    """An error whose words are meant for the user."""
    kind = _OF_CLASS.get(type(error))
    if kind is None or kind.status == HTTPStatus.INTERNAL_SERVER_ERROR:
        return unforeseen(request, error)
    listed = error.details.get("errors")
    faults = listed if listed else [{"field": error.field, "detail": error.message}]
    extensions = {name: value for name, value in error.details.items() if name != "errors"}
    headers = {"WWW-Authenticate": 'Bearer realm="costsvc"'} if kind.status == HTTPStatus.UNAUTHORIZED else {}
    if (wait_s := error.details.get("retry_after_s")) is not None:
        headers["Retry-After"] = str(wait_s)
    return _problem(request, kind, error.message, errors=faults, extensions=extensions, headers=headers)


def of_http(request: Request[Any, Any, Any], error: HTTPException) -> Response[bytes]:
    """An error that the framework or a route raised about HTTP itself."""
    kind = _OF_STATUS.get(error.status_code)
    if kind is None or error.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return unforeseen(request, error)
    headers = dict(error.headers or {})
    return _problem(request, kind, _detail_of_http(request, error, headers), headers=headers)


def unforeseen(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """Anything else: the reason goes to the log, a request id to the caller."""
    request_id = request_id_of(request.scope)
    _LOG.error("request %s failed: %s %s", request_id, request.method, request.scope["path"], exc_info=error)
    detail = (
        f"The service failed on this request. Report the request id {request_id}; the log holds the reason."
    )
    return _problem(request, _OF_STATUS[500], detail, extensions={"request_id": request_id})


HANDLERS: Final[dict[int | type[Exception], Callable[[Request[Any, Any, Any], Any], Response[Any]]]] = {
    CostsvcError: known,
    HTTPException: of_http,
    Exception: unforeseen,
}


def _detail_of_http(request: Request[Any, Any, Any], error: HTTPException, headers: Mapping[str, str]) -> str:
    path = request.scope["path"]
    if error.status_code == HTTPStatus.NOT_FOUND:
        return f"There is nothing at {path}. See /docs for every path."
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = next((value for name, value in headers.items() if name.lower() == "allow"), "")
        return (
            f"{path} does not answer {request.method}. Use one of: {', '.join(sorted(allowed.split(', ')))}."
        )
    if error.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        most = request.route_handler.resolve_request_max_body_size()
        return f"The body is longer than {most} bytes. Send less, or split it over several calls."
    return error.detail


def _problem(
    request: Request[Any, Any, Any],
    kind: Kind,
    detail: str,
    *,
    errors: object = (),
    extensions: Mapping[str, object] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response[bytes]:
    request.scope["state"]["problem"] = kind.slug
    detail = redacted(detail)
    readable = error_as_text(request)
    if readable is not None:
        # A cell shows the body of a success alone, so the status is one; a number it can never be read as.
        text = f"{ERROR_MARK}{detail}"
        return Response(
            readable.error(text), media_type=readable.content_type, headers={"Cache-Control": "no-store"}
        )
    standard = {
        "type": f"/problems/{kind.slug}",
        "title": kind.title,
        "status": kind.status,
        "detail": detail,
        "instance": quote(request.scope["path"]),
        "errors": errors,
    }
    finite = {name: value for name, value in (extensions or {}).items() if not _endless(value)}
    return Response(
        redacted(json.dumps({**standard, **finite, **standard}, default=str)).encode(),
        status_code=kind.status,
        media_type=MEDIA_TYPE,
        headers={"Cache-Control": "no-store", **(headers or {})},
    )


def _endless(value: object) -> bool:
    return isinstance(value, float) and not isfinite(value)
