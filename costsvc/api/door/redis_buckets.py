"""Token buckets that all processes and replicas share, in Redis or Valkey.

Asking Redis at every request would cost more than the quote. So a process takes a lease of some tokens at a time
and counts those in memory: what all processes answer together never exceeds the bucket, and most requests ask
nobody. Where Redis is away each process counts for itself, until a probe finds it again.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Self

from redis.asyncio import Redis
from redis.exceptions import RedisError

from costsvc.api.door.buckets import Buckets, Decision, Policy
from costsvc.errors import InvalidRequest

# The bucket counts by the clock of Redis, which is one for all. Answers the tokens leased and those left.
_LEASE: Final = """
local rate, burst, cost, lease = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local kept = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens = math.min(burst, tonumber(kept[1] or burst) + math.max(0, now - tonumber(kept[2] or now)) * rate)
local leased = 0
if tokens >= cost then leased = math.floor(math.min(tokens, math.max(cost, lease))) end
redis.call('HSET', KEYS[1], 'tokens', tostring(tokens - leased), 'at', string.format('%.6f', now))
redis.call('PEXPIRE', KEYS[1], math.ceil(burst / rate * 1000))
return {leased, tostring(tokens - leased)}
"""
_PREFIX: Final = "costsvc:bucket:"
# Of a whole bucket; so much of it at most lies unused in a process that the caller meets no more.
_LEASED_SHARE: Final = 0.01
# Longer than a busy process may keep its own answers from Redis waiting.
_LONGEST_WAIT_S: Final = 1.0
_PROBE_PAUSE_S: Final = 1.0
_MOST_CALLERS: Final = 65_536

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Account:
    """What a process holds of a caller's bucket: a lease, and what was left in the bucket when it was taken."""

    leased: int = 0
    left_there: float = 0.0
    leased_at_s: float = 0.0
    leasing: asyncio.Lock = field(default_factory=asyncio.Lock)


class RedisBuckets:
    """Buckets in Redis; while it is away, those of this process in `alone`."""

    def __init__(
        self, redis: Redis, policy: Policy, alone: Buckets, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._redis = redis
        self._script = redis.register_script(_LEASE)
        self._policy = policy
        self._alone = alone
        self._clock = clock
        self._lease = max(1, int(policy.burst * _LEASED_SHARE))
        self._accounts: OrderedDict[str, _Account] = OrderedDict()
        self._probing: asyncio.Task[None] | None = None

    @classmethod
    def at(cls, url: str, policy: Policy, alone: Buckets) -> Self:
        """Buckets at `redis://…`, which is first reached when it is first asked.

        Raises
        ------
        InvalidRequest
            The address is not of Redis.
        """
        try:
            redis = Redis.from_url(
                url, socket_timeout=_LONGEST_WAIT_S, socket_connect_timeout=_LONGEST_WAIT_S
            )
        except ValueError:
            # The text itself may hold a password, so it is not repeated.
            raise InvalidRequest(
                "The address of Redis is not redis://host:port/number. Set COSTSVC_REDIS_URL to such a one.",
                field="redis_url",
            ) from None
        return cls(redis, policy, alone)

    @property
    def is_reached(self) -> bool:
        """Whether Redis answered when it was last asked."""
        return self._probing is None

    async def take(self, caller: str, cost: int) -> Decision:
        """Count a request that weighs `cost` ordinary ones."""
        if self._probing is not None:
            return await self._alone.take(caller, cost)
        account = self._account(caller)
        if account.leased < cost:
            async with account.leasing:
                if account.leased < cost:
                    refused = await self._renew(caller, account, cost)
                    if refused is not None:
                        return refused
        account.leased -= cost
        return Decision(True, account.leased + int(account.left_there), 0.0)

    async def start(self) -> None:
        """Find out whether Redis answers."""
        if not await self._answers():
            self._lose()

    async def stop(self) -> None:
        """End probing and connections."""
        if self._probing is not None:
            self._probing.cancel()
        await self._redis.aclose()

    def _account(self, caller: str) -> _Account:
        account = self._accounts.get(caller)
        if account is None:
            account = self._accounts[caller] = _Account()
            if len(self._accounts) > _MOST_CALLERS:
                self._accounts.popitem(last=False)
        else:
            self._accounts.move_to_end(caller)
        return account

    async def _renew(self, caller: str, account: _Account, cost: int) -> Decision | None:
        """Take a lease; the refusal where there is none, or the answer of this process where Redis is away."""
        now_s = self._clock()
        if (wait_s := self._wait_s(account, cost, now_s)) > 0:
            return Decision(False, 0, wait_s)
        policy = self._policy
        try:
            async with asyncio.timeout(_LONGEST_WAIT_S):
                leased, left = await self._script(
                    keys=[f"{_PREFIX}{caller}"], args=[policy.per_s, policy.burst, cost, self._lease]
                )
        except (RedisError, OSError, TimeoutError):
            # This process may have been the one that was late, so it asks once more before it goes on alone.
            if not await self._answers():
                self._lose()
            return await self._alone.take(caller, cost)
        account.left_there, account.leased_at_s = float(left), now_s
        account.leased += int(leased)
        if int(leased):
            return None
        return Decision(False, int(account.left_there), self._wait_s(account, cost, now_s))

    def _wait_s(self, account: _Account, cost: int, now_s: float) -> float:
        """How long a bucket that was last seen empty stays too empty; 0 for one never seen. [s]"""
        if not account.leased_at_s:
            return 0.0
        there = account.left_there + (now_s - account.leased_at_s) * self._policy.per_s
        return max(0.0, (cost - there) / self._policy.per_s)

    def _lose(self) -> None:
        if self._probing is None:
            _log.warning("Redis does not answer: each process limits requests for itself until it does")
            self._accounts.clear()
            self._probing = asyncio.create_task(self._probe())

    async def _probe(self) -> None:
        while True:
            await asyncio.sleep(_PROBE_PAUSE_S)
            if await self._answers():
                _log.info("Redis answers again: all processes share the limits")
                self._probing = None
                return

    async def _answers(self) -> bool:
        try:
            async with asyncio.timeout(_LONGEST_WAIT_S):
                await self._redis.ping()
        except (RedisError, OSError, TimeoutError):
            return False
        return True
