"""The explorer, the launch check and the catalog as pages, and what they load.

Every file is read once and kept compressed. A strict policy lets a page load from this service alone, and run
no inline script.
"""

import gzip
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from litestar import HttpMethod, Request, Response, route
from litestar.exceptions import HTTPException
from litestar.params import FromPath

ASSETS: Final = Path(__file__).parent / "assets"
MEDIA_TYPES: Final = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}
# The style sheet that this version of the chart library writes into a chart, the class of charts being `plot`.
# Tests in a browser see that there is no other.
_CHART_STYLE: Final = "sha256-+TfQir1nvDucAdvE6XUQBt4ayUjpAWkbw2kCdSfekHM="
POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        f"style-src 'self' '{_CHART_STYLE}'",
        "img-src 'self' blob:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
_READ: Final = (HttpMethod.GET, HttpMethod.HEAD)


@dataclass(frozen=True, slots=True)
class Asset:
    """A file as it is sent."""

    plain: bytes
    compressed: bytes
    media_type: str
    tag: str


@cache
def asset(name: str) -> Asset:
    """A file below `ASSETS`.

    Raises
    ------
    HTTPException
        404: there is no such file.
    """
    path = (ASSETS / name).resolve()
    if not path.is_relative_to(ASSETS.resolve()) or path.suffix not in MEDIA_TYPES or not path.is_file():
        raise HTTPException(status_code=404)
    plain = path.read_bytes()
    tag = f'W/"{blake2b(plain, digest_size=12).hexdigest()}"'
    return Asset(plain, gzip.compress(plain, mtime=0), MEDIA_TYPES[path.suffix], tag)


@route("/", http_method=_READ, sync_to_thread=False, include_in_schema=False)
def get_explorer(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Prices of a model while its inputs move."""
    return _sent(request, "explorer.html")


@route("/launch", http_method=_READ, sync_to_thread=False, include_in_schema=False)
def get_launch(request: Request[Any, Any, Any]) -> Response[bytes]:
    """A launch check to read, print and pass on."""
    return _sent(request, "launch.html")


@route("/catalog", http_method=_READ, sync_to_thread=False, include_in_schema=False)
def get_catalog(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Models and accelerators with their facts, sources and price history."""
    return _sent(request, "catalog.html")


@route("/accuracy", http_method=_READ, sync_to_thread=False, include_in_schema=False)
def get_accuracy(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Errors on published measurements, by regime."""
    return _sent(request, "accuracy.html")


@route("/assets/{path:path}", http_method=_READ, sync_to_thread=False, include_in_schema=False)
def get_asset(request: Request[Any, Any, Any], path: FromPath[str]) -> Response[bytes]:
    """What the pages load."""
    return _sent(request, path.removeprefix("/"))


def _sent(request: Request[Any, Any, Any], name: str) -> Response[bytes]:
    found = asset(name)
    headers = {
        "Content-Security-Policy": POLICY,
        "ETag": found.tag,
        "Cache-Control": "public, no-cache",
        "Vary": "Accept-Encoding",
    }
    if found.tag in request.headers.get("if-none-match", ""):
        return Response(b"", status_code=304, media_type=found.media_type, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"] = "gzip"
        return Response(found.compressed, media_type=found.media_type, headers=headers)
    return Response(found.plain, media_type=found.media_type, headers=headers)
