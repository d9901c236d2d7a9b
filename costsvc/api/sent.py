"""What a request says in its headers, read from where the server put it."""

from litestar.types import Scope


def sent(scope: Scope, header: bytes) -> tuple[bytes, ...]:
    """The values of a header, whose name is in lower case."""
    return tuple([value for name, value in scope["headers"] if name == header])


def accepted(scope: Scope) -> str | None:
    """What `Accept` says first, None where it is not sent."""
    values = sent(scope, b"accept")
    return values[0].decode("latin-1") if values else None


def named_tags(scope: Scope) -> str:
    """What `If-None-Match` says."""
    return b",".join(sent(scope, b"if-none-match")).decode("latin-1")
