"""The door itself: every request shows its key, is counted and, where the house is full, waits outside."""

import math
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Final

from litestar.concurrency import sync_to_thread
from litestar.types import ASGIApp, Receive, Scope, Send

from costsvc.api.auth import HOW_TO_SHOW, shown_key
from costsvc.api.door.buckets import Buckets, Decision, Policy, caller_at
from costsvc.api.door.heavy_work import HeavyWork
from costsvc.api.door.pace import Paced
from costsvc.api.watch.metrics import Metrics
from costsvc.db.keyring import KeyRing
from costsvc.errors import NotAuthorized, Overloaded, RateLimited
from costsvc.quoting.words import counted

# What long work weighs beside a quote. An estimate: /compare takes some hundred milliseconds, a quote a few.
HEAVY_COST: Final = 20
_SOON_S: Final = 1
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})
_NOWHERE: Final = nullcontext()


@dataclass(slots=True)
class Inside:
    """How many requests are being answered; one count for the doors of all routes."""

    requests: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """What the door guards, and by which rules.

    Parameters
    ----------
    policy : Policy or None
        How much one key, or one address without a key, may ask; None: as much as it likes.
    most_requests : int
        Requests inside at a time.
    body_grace_s : float
        How long a body may take, however short it is. [s]
    """

    keys: KeyRing
    is_key_required: bool
    policy: Policy | None
    buckets: Buckets
    heavy: HeavyWork
    metrics: Metrics
    most_requests: int
    body_grace_s: float
    inside: Inside = field(default_factory=Inside)


class Door:
    """Middleware of every route. What it refuses leaves as a problem, like the errors of handlers."""

    def __init__(self, app: ASGIApp, house: House) -> None:
        self._app = app
        self._house = house
        self._policy_header = b"" if house.policy is None else _policy_header(house.policy)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or raise what keeps it out."""
        house, inside = self._house, self._house.inside
        opt = scope["route_handler"].opt
        method = scope.get("method")
        if method == "OPTIONS":
            # A browser asks first, without the key that it will show.
            await self._app(scope, receive, send)
            return
        cost = 0 if "uncounted" in opt else HEAVY_COST if "heavy" in opt else 1
        await self._admit(scope, is_open="open" in opt, cost=cost)
        if inside.requests >= house.most_requests and cost:
            raise Overloaded(
                f"The service answers {counted(inside.requests, 'request')} at a time, and so many are inside. "
                f"Ask again in {_SOON_S} s.",
                details={"most_requests": house.most_requests, "retry_after_s": _SOON_S},
            )
        if method in _WITH_BODY:
            receive = Paced(receive, grace_s=house.body_grace_s)
        inside.requests += 1
        try:
            with house.heavy.place() if "heavy" in opt else _NOWHERE:
                await self._app(scope, receive, send)
        finally:
            inside.requests -= 1

    async def _admit(self, scope: Scope, *, is_open: bool, cost: int) -> None:
        house, state = self._house, scope["state"]
        shown = shown_key(scope)
        if not shown:
            if house.is_key_required and not is_open:
                raise NotAuthorized(f"This service answers holders of a key alone. {HOW_TO_SHOW}")
            await self._count(scope, _address_of(scope), cost)
            return
        key = house.keys.known(shown)
        if key is None:
            # Guesses are counted where they come from, so that they do not load the database.
            await self._count(scope, _address_of(scope), cost)
            key = await sync_to_thread(house.keys.verify, shown)
        else:
            await self._count(scope, f"key {key.id}", cost)
        state["key"] = key

    async def _count(self, scope: Scope, caller: str, cost: int) -> None:
        policy = self._house.policy
        if policy is None or not cost:
            return
        decision = await self._house.buckets.take(caller, cost)
        self._house.metrics.limited(decision.is_allowed)
        scope["state"]["headers"] = (
            (b"ratelimit-policy", self._policy_header),
            (b"ratelimit", _limit_header(decision)),
        )
        if not decision.is_allowed:
            wait_s = max(1, math.ceil(decision.wait_s))
            raise RateLimited(
                f"One {caller.partition(' ')[0]} may make {policy.burst:,} requests at once and {policy.per_s:g} "
                f"a second after that; a long answer, such as a comparison or a batch, counts as {HEAVY_COST}. "
                f"Ask again in {wait_s} s, or ask for many quotes in one call: POST /quotes/batch, or lists in "
                "/quote.csv.",
                details={"burst": policy.burst, "per_s": policy.per_s, "retry_after_s": wait_s},
            )


# Fields of the IETF draft "RateLimit header fields for HTTP".
def _policy_header(policy: Policy) -> bytes:
    return b'"caller";q=%d;w=%d' % (policy.burst, math.ceil(policy.burst / policy.per_s))


def _limit_header(decision: Decision) -> bytes:
    left = b'"caller";r=%d' % decision.left
    return left if decision.is_allowed else b"%b;t=%d" % (left, max(1, math.ceil(decision.wait_s)))


def _address_of(scope: Scope) -> str:
    client = scope.get("client")
    return caller_at(client[0] if client else "")
