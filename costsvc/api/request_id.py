"""A name for each request: the caller's own if it is harmless, else a fresh one."""

import re
import secrets
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from litestar.types import Scope

_HARMLESS = re.compile(rb"[A-Za-z0-9._-]{1,64}")


def request_id_of(scope: "Scope") -> str:
    """The request's id, the same at every call."""
    state = cast("dict[str, str]", scope["state"])
    if "request_id" not in state:
        given = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"")
        state["request_id"] = given.decode() if _HARMLESS.fullmatch(given) else secrets.token_hex(8)
    return state["request_id"]
