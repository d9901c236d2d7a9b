"""Buckets that processes share: together they answer no more than one would, and without Redis each goes on alone."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from uuid import uuid4

import pytest
from redis import Redis as BlockingRedis
from redis.exceptions import RedisError

from costsvc.api.door import redis_buckets
from costsvc.api.door.buckets import Policy, ProcessBuckets
from costsvc.api.door.redis_buckets import RedisBuckets
from costsvc.errors import InvalidRequest
from tests.coroutines import finished

URL = os.environ.get("COSTSVC_TEST_REDIS_URL") or "redis://127.0.0.1:6379/0"
# So slow a drip that it plays no part while a test runs.
POLICY = Policy(burst=1000, per_s=0.001)
PATIENCE_S = 60.0
NOWHERE = "redis://127.0.0.1:1/0"


@pytest.fixture
def caller() -> Iterator[str]:
    """A caller of this test's own, whose bucket is taken away again."""
    name = f"test {uuid4().hex}"
    redis = BlockingRedis.from_url(URL, socket_connect_timeout=1)
    try:
        redis.ping()
    except RedisError:
        pytest.skip(
            "No Redis answers at COSTSVC_TEST_REDIS_URL (default: the standard port of this machine)."
        )
    yield name
    redis.delete(f"costsvc:bucket:{name}")
    redis.close()


def buckets(url: str = URL, policy: Policy = POLICY) -> RedisBuckets:
    return RedisBuckets.at(url, policy, ProcessBuckets(policy))


def used(use: Callable[[RedisBuckets], Awaitable[object]], made: RedisBuckets) -> None:
    async def run() -> None:
        await made.start()
        try:
            await use(made)
        finally:
            await made.stop()

    finished(run())


async def reached(shared: RedisBuckets, within_looks: int) -> bool:
    for _ in range(within_looks):
        if shared.is_reached:
            return True
        await asyncio.sleep(0.01)
    return False


def test_processes_together_answer_as_many_as_one_would(caller: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_buckets, "_LONGEST_WAIT_S", PATIENCE_S)

    async def run() -> list[bool]:
        processes = [buckets() for _ in range(3)]
        decisions = await asyncio.gather(
            *(processes[number % 3].take(caller, 1) for number in range(1500)),
        )
        for process in processes:
            assert process.is_reached
            await process.stop()
        return [one.is_allowed for one in decisions]

    assert sum(finished(run())) == 1000


def test_most_requests_ask_redis_nothing(caller: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def use(shared: RedisBuckets) -> None:
        asked = 0
        script = shared._script

        async def counted(*args: object, **named: object) -> object:
            nonlocal asked
            asked += 1
            return await script(*args, **named)  # type: ignore[arg-type]

        monkeypatch.setattr(shared, "_script", counted)
        for _ in range(300):
            assert (await shared.take(caller, 1)).is_allowed
        assert asked == 300 / (POLICY.burst * 0.01)

    used(use, buckets())


def test_an_empty_bucket_is_refused_from_memory_and_says_how_long(caller: str) -> None:
    policy = Policy(burst=100, per_s=10.0)

    async def use(shared: RedisBuckets) -> None:
        while (refused := await shared.take(caller, 1)).is_allowed:
            pass
        assert 0 < refused.wait_s <= 0.1
        await asyncio.sleep(refused.wait_s)
        assert (await shared.take(caller, 1)).is_allowed

    used(use, buckets(policy=policy))


def test_heavy_requests_weigh_in_redis_buckets_too(caller: str) -> None:
    async def use(shared: RedisBuckets) -> None:
        decisions = [await shared.take(caller, 300) for _ in range(4)]
        assert [one.is_allowed for one in decisions] == [True, True, True, False]

    used(use, buckets())


def test_without_redis_a_process_limits_for_itself() -> None:
    async def use(shared: RedisBuckets) -> None:
        assert not shared.is_reached
        decisions = [await shared.take("a", 1) for _ in range(1001)]
        assert [one.is_allowed for one in decisions] == [True] * 1000 + [False]

    used(use, buckets(NOWHERE))


def test_redis_that_goes_away_is_missed_once_and_found_again(
    caller: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_buckets, "_PROBE_PAUSE_S", 0.01)

    async def use(shared: RedisBuckets) -> None:
        assert (await shared.take(caller, 1)).is_allowed
        nowhere = buckets(NOWHERE)
        there, shared._script = shared._script, nowhere._script
        ping, shared._redis.ping = shared._redis.ping, nowhere._redis.ping  # type: ignore[method-assign]
        assert all([(await shared.take(f"{caller} {number}", 1)).is_allowed for number in range(5)])
        assert await reached(shared, within_looks=1) is False
        shared._script, shared._redis.ping = there, ping  # type: ignore[method-assign]
        assert await reached(shared, within_looks=1000)
        assert (await shared.take(caller, 1)).is_allowed

    used(use, buckets())


def test_an_address_that_is_none_is_refused_without_repeating_it() -> None:
    with pytest.raises(InvalidRequest, match="COSTSVC_REDIS_URL") as refused:
        buckets("http://user:hunter2@host")
    assert "hunter2" not in str(refused.value)
