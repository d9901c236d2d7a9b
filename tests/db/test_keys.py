"""API keys: valid while they are meant to be, and never kept in clear."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Engine, inspect, text

from costsvc.db.audit import audit_entries
from costsvc.db.keys import KeyRepository
from costsvc.errors import NotAuthorized, NotInCatalog

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def keys(engine: Engine, clock: Clock) -> KeyRepository:
    return KeyRepository(engine, clock)


def make(keys: KeyRepository, expires_at: datetime | None = None) -> str:
    made, _ = keys.create(scope="admin", label="loader", owner="ana", author="root", expires_at=expires_at)
    return made


def test_a_key_is_known_again_with_its_scope_and_owner(keys: KeyRepository) -> None:
    made, record = keys.create(scope="read", label="sheet", owner="finance", author="root")
    assert keys.verify(f" {made}\n") == record
    assert (record.scope, record.label, record.owner, record.created_at) == ("read", "sheet", "finance", NOON)


@pytest.mark.parametrize(
    "change", [lambda key: key[:-1], lambda key: key + "x", lambda _: "", lambda _: "a_b_c"]
)
def test_anything_but_the_whole_key_is_refused(keys: KeyRepository, change: object) -> None:
    made = make(keys)
    assert callable(change)
    with pytest.raises(NotAuthorized, match="not known"):
        keys.verify(change(made))


def test_the_id_of_one_key_does_not_open_with_the_secret_of_another(keys: KeyRepository) -> None:
    (_, one, _), (_, _, other) = make(keys).split("_", 2), make(keys).split("_", 2)
    with pytest.raises(NotAuthorized):
        keys.verify(f"costsvc_{one}_{other}")


def test_a_revoked_key_is_refused_and_says_when(keys: KeyRepository) -> None:
    made = make(keys)
    keys.revoke(keys.verify(made).id, author="root")
    with pytest.raises(NotAuthorized, match="revoked on 2026-11-29"):
        keys.verify(made)


def test_a_key_is_valid_until_it_expires(keys: KeyRepository, clock: Clock) -> None:
    made = make(keys, expires_at=NOON + timedelta(hours=1))
    clock.now = NOON + timedelta(minutes=59)
    assert keys.verify(made).expires_at == NOON + timedelta(hours=1)
    clock.now = NOON + timedelta(hours=1)
    with pytest.raises(NotAuthorized, match="expired on 2026-11-29"):
        keys.verify(made)


def test_a_second_revocation_keeps_the_day_of_the_first(keys: KeyRepository, clock: Clock) -> None:
    id = keys.verify(make(keys)).id
    keys.revoke(id, author="root")
    clock.now = NOON + timedelta(days=9)
    keys.revoke(id, author="root")
    assert [key.revoked_at for key in keys.listed()] == [NOON]


def test_to_revoke_a_key_that_never_was_is_an_error(keys: KeyRepository) -> None:
    with pytest.raises(NotInCatalog, match="API key 'nothing'"):
        keys.revoke("nothing", author="root")


def test_no_secret_is_anywhere_in_the_database(keys: KeyRepository, engine: Engine) -> None:
    made = make(keys)
    keys.revoke(keys.verify(made).id, author="root")
    secret = made.split("_", 2)[2]
    with engine.connect() as connection:
        kept = [
            str(value)
            for table in inspect(engine).get_table_names()
            for row in connection.execute(text(f'SELECT * FROM "{table}"'))  # noqa: S608 - names of our own tables
            for value in row
        ]
    assert any(value == "loader" for value in kept)
    assert [value for value in kept if secret in value] == []


def test_making_and_revoking_a_key_leave_a_record_of_who_did_it(keys: KeyRepository, engine: Engine) -> None:
    id = keys.verify(make(keys)).id
    keys.revoke(id, author="bob")
    revoked, created = audit_entries(engine)
    assert (revoked.actor, revoked.action, revoked.subject) == ("bob", "revoke key", f"key {id}")
    assert (created.actor, created.action, created.subject) == ("root", "create key", f"key {id}")
    assert created.after == {"scope": "admin", "label": "loader", "owner": "ana"}
