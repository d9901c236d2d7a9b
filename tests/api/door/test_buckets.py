"""A burst passes, abuse does not, and nobody is counted for another."""

import pytest

from costsvc.api.door.buckets import Decision, Policy, ProcessBuckets, caller_at
from tests.coroutines import finished

POLICY = Policy(burst=100, per_s=2.0)


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def taken(buckets: ProcessBuckets, times: int, caller: str = "a", cost: int = 1) -> list[Decision]:
    async def take() -> list[Decision]:
        return [await buckets.take(caller, cost) for _ in range(times)]

    return finished(take())


def test_a_burst_passes_and_one_more_is_told_how_long_to_wait() -> None:
    buckets = ProcessBuckets(POLICY, clock=Clock())
    assert [one.left for one in taken(buckets, 100)] == list(range(99, -1, -1))
    assert taken(buckets, 1) == [Decision(False, 0, 0.5)]


def test_after_the_wait_that_was_told_the_next_passes() -> None:
    clock = Clock()
    buckets = ProcessBuckets(POLICY, clock=clock)
    taken(buckets, 100)
    clock.now_s += taken(buckets, 1)[0].wait_s
    assert [one.is_allowed for one in taken(buckets, 2)] == [True, False]


def test_over_time_a_caller_gets_the_burst_and_what_drips_in() -> None:
    clock = Clock()
    buckets = ProcessBuckets(POLICY, clock=clock)
    allowed = 0
    for _ in range(1000):
        clock.now_s += 0.1
        allowed += taken(buckets, 1)[0].is_allowed
    assert allowed == 100 + int(2.0 * 100) - 1


def test_a_bucket_never_holds_more_than_a_burst() -> None:
    clock = Clock()
    buckets = ProcessBuckets(POLICY, clock=clock)
    taken(buckets, 1)
    clock.now_s += 1e6
    assert taken(buckets, 1)[0].left == 99


def test_what_weighs_more_takes_more_and_a_refusal_takes_nothing() -> None:
    buckets = ProcessBuckets(POLICY, clock=Clock())
    assert [one.left for one in taken(buckets, 4, cost=30)] == [70, 40, 10, 10]
    assert taken(buckets, 1, cost=10)[0].is_allowed


def test_callers_have_buckets_of_their_own_and_the_longest_unseen_is_forgotten() -> None:
    buckets = ProcessBuckets(POLICY, clock=Clock(), most_callers=2)
    taken(buckets, 100, "a")
    assert taken(buckets, 1, "b")[0].left == 99
    assert not taken(buckets, 1, "a")[0].is_allowed
    taken(buckets, 1, "c")
    assert taken(buckets, 1, "b")[0].left == 99
    assert len(buckets._tokens) == 2


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("somewhere", "elsewhere", False),
    ],
)
def test_a_caller_is_an_address_or_a_network_of_ipv6(one: str, other: str, is_same: bool) -> None:
    assert (caller_at(one) == caller_at(other)) is is_same
