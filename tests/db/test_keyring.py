"""Keys in memory: seen once they cost no database, and revoked ones open nothing after the next look."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Engine

from costsvc.db.keyring import LONGEST_PAUSE_S, KeyRing
from costsvc.db.keys import SCOPES, ApiKey, KeyRepository, Scope
from costsvc.errors import NotAuthorized, Unavailable

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


class Keys(KeyRepository):
    """Keys that count how often the database is asked, and that can lose it."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine, now=lambda: NOON)
        self.asked = 0
        self.is_away = False

    def _ask(self) -> None:
        self.asked += 1
        if self.is_away:
            raise Unavailable("away")

    def verify(self, text: str) -> ApiKey:
        self._ask()
        return super().verify(text)

    def records(self, ids: object) -> dict[str, ApiKey]:
        self._ask()
        return super().records(ids)  # type: ignore[arg-type]


@pytest.fixture
def keys(engine: Engine) -> Keys:
    return Keys(engine)


@pytest.fixture
def make(keys: Keys) -> Callable[..., tuple[str, ApiKey]]:
    def make(scope: Scope = "read", expires_at: datetime | None = None) -> tuple[str, ApiKey]:
        return keys.create(scope=scope, label="x", owner="finance", author="tests", expires_at=expires_at)

    return make


def test_a_key_that_was_verified_is_known_without_the_database(
    keys: Keys, make: Callable[..., tuple[str, ApiKey]]
) -> None:
    secret, key = make()
    ring = KeyRing(keys)
    assert ring.known(secret) is None
    assert ring.verify(secret) == key
    asked = keys.asked
    assert [ring.known(secret) for _ in range(100)] == [key] * 100
    assert keys.asked == asked


def test_a_revoked_key_is_not_known_after_the_next_look(
    keys: Keys, make: Callable[..., tuple[str, ApiKey]]
) -> None:
    (secret, key), (other, kept) = make(), make()
    ring = KeyRing(keys)
    ring.verify(secret)
    ring.verify(other)
    KeyRepository(keys._engine).revoke(key.id, author="another process")
    ring.refresh()
    assert ring.known(secret) is None
    assert ring.known(other) == kept
    with pytest.raises(NotAuthorized, match="revoked"):
        ring.verify(secret)
    assert LONGEST_PAUSE_S <= 1


def test_a_key_that_expires_while_it_is_held_is_not_known(
    keys: Keys, make: Callable[..., tuple[str, ApiKey]]
) -> None:
    now = NOON
    secret, key = make(expires_at=NOON + timedelta(seconds=1))
    ring = KeyRing(keys, now=lambda: now)
    ring.verify(secret)
    assert ring.known(secret) == key
    now += timedelta(seconds=1)
    assert ring.known(secret) is None


def test_while_the_database_is_away_known_keys_stay_valid_and_others_are_unavailable(
    keys: Keys, make: Callable[..., tuple[str, ApiKey]]
) -> None:
    (secret, key), (unseen, _) = make(), make()
    ring = KeyRing(keys)
    ring.verify(secret)
    keys.is_away = True
    ring.refresh()
    assert ring.known(secret) == key
    with pytest.raises(Unavailable):
        ring.verify(unseen)


def test_no_more_keys_are_held_than_said(keys: Keys, make: Callable[..., tuple[str, ApiKey]]) -> None:
    ring = KeyRing(keys, most_held=2)
    secrets = [make()[0] for _ in range(3)]
    for secret in secrets:
        ring.verify(secret)
    assert [ring.known(secret) is not None for secret in secrets] == [False, True, True]


def test_each_scope_allows_what_those_before_it_do(make: Callable[..., tuple[str, ApiKey]]) -> None:
    allowed = {scope: [wanted for wanted in SCOPES if make(scope)[1].may(wanted)] for scope in SCOPES}
    assert allowed == {scope: list(SCOPES[: SCOPES.index(scope) + 1]) for scope in SCOPES}
