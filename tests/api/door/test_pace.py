"""Bodies that arrive within reason are read; a client that trickles is told so and cut off."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from litestar.exceptions import HTTPException

from costsvc.api.door.pace import Paced
from tests.coroutines import finished


def received(pieces: Sequence[tuple[float, bytes]], grace_s: float) -> list[Any]:
    """What a handler reads of pieces, each after a pause."""
    left = iter(pieces)

    async def receive() -> Any:
        pause_s, body = next(left)
        await asyncio.sleep(pause_s)
        return {"type": "http.request", "body": body, "more_body": body != b"end"}

    async def read() -> list[Any]:
        paced: Any = Paced(receive, grace_s=grace_s)
        messages: list[Any] = []
        while not messages or messages[-1]["more_body"]:
            messages.append(await paced())
        return messages

    return finished(read())


def test_a_body_in_time_is_read_as_it_came() -> None:
    assert [one["body"] for one in received([(0, b"a"), (0.001, b"b"), (0, b"end")], 10)] == [
        b"a",
        b"b",
        b"end",
    ]


@pytest.mark.parametrize("pieces", [[(10, b"a")], [(0, b"a")] + [(0.02, b"b")] * 100])
def test_a_body_that_trickles_is_refused_with_the_numbers(pieces: list[tuple[float, bytes]]) -> None:
    with pytest.raises(HTTPException, match="10,000 bytes a second") as refused:
        received(pieces, 0.05)
    assert refused.value.status_code == 408
    assert refused.value.headers == {"Connection": "close"}


def test_what_arrived_earns_time() -> None:
    large = b"x" * 1000
    assert len(received([(0, large), *[(0.06, large)] * 3, (0, b"end")], 0.1)) == 5


def test_after_the_body_an_answer_may_take_its_time() -> None:
    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def read() -> Any:
        paced = Paced(receive, grace_s=0.01)
        await paced()
        await asyncio.sleep(0.02)
        return await paced()

    assert finished(read())["type"] == "http.request"
