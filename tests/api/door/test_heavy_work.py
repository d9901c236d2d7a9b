"""So much long work at a time; what comes on top waits, and beyond that is refused at once."""

import asyncio
from collections.abc import Callable
from threading import Event

import pytest

from costsvc.api.door.heavy_work import HeavyWork
from costsvc.errors import Overloaded
from tests.coroutines import finished

PATIENCE_S = 10


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():
            await asyncio.sleep(0.001)


def test_no_more_is_computed_at_a_time_than_said() -> None:
    running, most = 0, 0

    def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        Event().wait(0.01)
        running -= 1

    async def run() -> None:
        heavy = HeavyWork(running=2, waiting=10)
        await asyncio.gather(*(heavy.run(work) for _ in range(8)))
        assert heavy.waiting == 0

    finished(run())
    assert most == 2


def test_one_more_than_may_wait_is_refused_with_the_number_and_when_to_ask_again() -> None:
    done = Event()

    async def run() -> None:
        heavy = HeavyWork(running=1, waiting=1)
        first = asyncio.create_task(heavy.run(lambda: done.wait(PATIENCE_S)))
        await asyncio.sleep(0)
        second = asyncio.create_task(heavy.run(lambda: "second"))
        await until(lambda: heavy.waiting == 1)
        with pytest.raises(Overloaded, match="1 long answers at a time and 1 more wait") as refused:
            await heavy.run(lambda: None)
        assert refused.value.details["retry_after_s"] in range(1, 61)
        done.set()
        assert (await first, await second) == (True, "second")

    finished(run())


def test_who_waits_too_long_is_told_so_and_leaves_the_queue() -> None:
    done = Event()

    async def run() -> None:
        heavy = HeavyWork(running=1, waiting=5, longest_wait_s=0.01)
        first = asyncio.create_task(heavy.run(lambda: done.wait(PATIENCE_S)))
        await asyncio.sleep(0)
        with pytest.raises(Overloaded):
            await heavy.run(lambda: None)
        assert heavy.waiting == 0
        done.set()
        assert await first

    finished(run())


def test_work_that_takes_longer_than_a_wait_is_finished() -> None:
    async def run() -> bool:
        heavy = HeavyWork(running=1, waiting=0, longest_wait_s=0.01)
        return await heavy.run(lambda: not Event().wait(0.05))

    assert finished(run())


def test_places_are_counted_for_whole_requests_and_given_back_after_a_fault() -> None:
    heavy = HeavyWork(running=1, waiting=1)
    with heavy.place():
        with pytest.raises(RuntimeError), heavy.place():
            raise RuntimeError
        with heavy.place(), pytest.raises(Overloaded), heavy.place():
            pass


def test_pieces_of_a_long_answer_let_others_in_between() -> None:
    order = []

    def pieces() -> object:
        for number in range(3):
            order.append(f"piece {number}")
            yield b"x"

    async def run() -> None:
        heavy = HeavyWork(running=1, waiting=5)
        streamed = heavy.pieces(pieces())  # type: ignore[arg-type]
        assert await anext(streamed) == b"x"
        await heavy.run(lambda: order.append("other"))
        assert [piece async for piece in streamed] == [b"x", b"x"]

    finished(run())
    assert order == ["piece 0", "other", "piece 1", "piece 2"]
