"""Bytes of a file or of an https address, of bounded size."""

from pathlib import Path
from typing import Final
from urllib.error import URLError
from urllib.request import urlopen

from costsvc.errors import InvalidRequest

MAX_BYTES: Final = 200_000_000
_PATIENCE_S: Final = 30.0
_HTTPS: Final = "https://"


def read_bytes(place: str) -> bytes:
    """What stands at a place.

    Raises
    ------
    InvalidRequest
        It cannot be read, or is longer than `MAX_BYTES`.
    """
    try:
        content = _downloaded(place) if place.startswith(_HTTPS) else Path(place).read_bytes()
    except (OSError, URLError, ValueError) as error:
        raise InvalidRequest(f"{place} cannot be read: {error}.", field="from") from error
    if len(content) > MAX_BYTES:
        raise InvalidRequest(f"{place} is longer than {MAX_BYTES:,} bytes.", field="from")
    return content


def _downloaded(address: str) -> bytes:
    with urlopen(address, timeout=_PATIENCE_S) as response:  # noqa: S310 - the scheme is https
        content: bytes = response.read(MAX_BYTES + 1)
        return content
