"""A name for each request: the caller's own if it is harmless, else a fresh one."""

import re
import secrets
from itertools import count
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from litestar.types import Scope

_HARMLESS = re.compile(rb"[A-Za-z0-9._-]{1,64}")
# A fresh id is a process and a number: to ask the system for random bytes each time would cost more than all else here.
_NUMBERS = count(1)
_PROCESS = secrets.token_hex(6)


def request_id_of(scope: "Scope") -> str:
    """The request's id, the same at every call."""
    state = cast("dict[str, str]", scope["state"])
    if "request_id" not in state:
        given = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"")
        is_harmless = given and _HARMLESS.fullmatch(given)
        state["request_id"] = given.decode() if is_harmless else f"{_PROCESS}{next(_NUMBERS):08x}"
    return state["request_id"]
