"""The answers kept in memory: bounded, the one not asked for the longest dropped first, never another's."""

from costsvc.api.answers import Answers, Known

KNOWN = Known("tag", ((b"etag", b"W/tag"),), b"application/json")


def test_a_body_is_made_once_and_told_of_each_time() -> None:
    told: list[bool] = []
    answers = Answers(told.append, most_bytes=10_000)
    made: list[bytes] = []

    def make() -> bytes:
        made.append(b"body")
        return b"body"

    assert [answers.body("tag", make) for _ in range(3)] == [b"body"] * 3
    assert (len(made), told) == (1, [False, True, True])


def test_the_body_not_asked_for_the_longest_goes_first() -> None:
    answers = Answers(lambda _: None, most_bytes=10_000)
    for tag in ("a", "b", "c"):
        answers.body(tag, lambda: b"x" * 900)
    answers.held("a")
    for number in range(5):
        answers.body(f"more {number}", lambda: b"x" * 900)
    assert answers.held("a") is not None
    assert answers.held("b") is None


def test_a_body_that_would_fill_the_room_is_not_kept() -> None:
    answers = Answers(lambda _: None, most_bytes=10_000)
    answers.body("large", lambda: b"x" * 2_000)
    assert answers.held("large") is None


def test_words_are_known_by_the_tag_they_asked_for() -> None:
    answers = Answers(lambda _: None, most_bytes=10_000)
    assert answers.asked(("/quote", b"model=x")) is None
    answers.remember(("/quote", b"model=x"), KNOWN)
    assert answers.asked(("/quote", b"model=x")) == KNOWN


def test_words_are_bounded_too() -> None:
    answers = Answers(lambda _: None, most_bytes=10_000)
    for number in range(100):
        answers.remember(number, KNOWN)
    assert answers.asked(99) is not None
    assert sum(answers.asked(number) is not None for number in range(100)) == 3
