"""Before the handlers of reads: what was asked before in the very same words leaves again as it left then."""

from datetime import date
from typing import Final, NamedTuple

from litestar.types import ASGIApp, Receive, Scope, Send

from costsvc.api.answers import Answers, is_named
from costsvc.api.auth import key_of
from costsvc.api.sent import named_tags, sent
from costsvc.api.service import Service
from costsvc.api.viewer import newest_for

RECALLED: Final = {"recalled": True}
"""`opt` of a handler whose answers depend on nothing but `Words`."""

_READS: Final = frozenset({"GET", "HEAD"})
# A query that names a revision is not of the newest catalog, and one that shows a key must not stay in memory;
# either may be spelled with escapes.
_NEVER_KEPT: Final = (b"revision=", b"api_key=", b"%")


class Words(NamedTuple):
    """All that an answer depends on, as it was asked for. `catalog` is the fingerprint of the newest one."""

    path: str
    query: bytes
    accept: tuple[bytes, ...]
    catalog: str
    day: date
    is_stale: bool
    is_keyed: bool


def words_of(scope: Scope) -> Words | None:
    """The words of a request, where its answer may be remembered by them."""
    words: Words | None = scope["state"].get("words")
    return words


class Recall:
    """Middleware behind the door: every request was counted, and every key was verified."""

    def __init__(self, app: ASGIApp, service: Service, answers: Answers) -> None:
        self._app = app
        self._service = service
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer from memory, or pass the request on and let its answer be remembered."""
        if not _may_be_recalled(scope) or not await self._answered(scope, receive, send):
            await self._app(scope, receive, send)

    async def _answered(self, scope: Scope, receive: Receive, send: Send) -> bool:
        words = scope["state"]["words"] = self._words(scope)
        known = self._answers.asked(words)
        if known is None:
            return False
        if is_named(known.tag, named_tags(scope)):
            response = known.unchanged()
        elif (held := self._answers.held(known.tag)) is not None:
            response = known.with_body(held)
        else:
            return False
        await response(scope, receive, send)
        return True

    def _words(self, scope: Scope) -> Words:
        service = self._service
        catalog = newest_for(scope, service)
        return Words(
            scope["path"],
            scope["query_string"],
            sent(scope, b"accept"),
            catalog.fingerprint,
            service.today(),
            service.is_stale,
            key_of(scope) is not None,
        )


def _may_be_recalled(scope: Scope) -> bool:
    if "recalled" not in scope["route_handler"].opt or scope.get("method") not in _READS:
        return False
    query = scope["query_string"]
    return not any(part in query for part in _NEVER_KEPT)
