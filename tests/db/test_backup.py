"""A copy of a database, put back elsewhere, is the same database: catalog, keys, quotes and the record of acts."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, inspect, select

from costsvc.db.audit import audit_entries
from costsvc.db.backup import back_up, restore
from costsvc.db.engine import make_engine
from costsvc.db.keys import KeyRepository
from costsvc.db.migrate import upgrade
from costsvc.db.repository import CatalogRepository
from costsvc.db.tables import RevisionRow
from costsvc.errors import InvalidRequest, Unavailable
from tests.db.examples import CONTENT

Elsewhere = Callable[[], Engine]


@pytest.fixture
def elsewhere(engine: Engine, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Elsewhere]:
    """Makes an empty database of the same kind."""
    made: list[Engine] = []

    def make() -> Engine:
        if engine.dialect.name == "sqlite":
            url = f"sqlite:///{tmp_path / f'elsewhere{len(made)}.db'}"
        else:
            if shutil.which("pg_dump") is None:
                pytest.skip("pg_dump is not on this machine (apt install postgresql-client)")
            url = request.getfixturevalue("new_postgres_database")()
        made.append(make_engine(url))
        return made[-1]

    yield make
    for one in made:
        one.dispose()


def rows(engine: Engine) -> dict[str, list[tuple[object, ...]]]:
    with engine.connect() as connection:
        return {
            name: sorted((tuple(row) for row in connection.execute(select(table))), key=repr)
            for name, table in RevisionRow.metadata.tables.items()
        }


def test_what_is_put_back_is_what_was_kept(
    engine: Engine, repository: CatalogRepository, elsewhere: Elsewhere, tmp_path: Path
) -> None:
    other = elsewhere()
    repository.store(CONTENT, author="ana", note="first")
    secret, key = KeyRepository(engine).create(scope="quote", label="x", owner="finance", author="ana")
    back_up(engine, tmp_path / "copy")
    kept = rows(engine)
    KeyRepository(engine).revoke(key.id, author="ana")
    restore(other, tmp_path / "copy")
    upgrade(other)
    assert rows(other) == kept
    assert KeyRepository(other).verify(secret) == key
    assert CatalogRepository(other).load() == repository.load()
    # And it goes on: numbers of new rows do not meet old ones.
    KeyRepository(other).create(scope="read", label="y", owner="", author="ana")
    assert len(audit_entries(other)) == len(audit_entries(engine))


def test_a_copy_never_writes_over_a_file_nor_over_a_database(
    engine: Engine, elsewhere: Elsewhere, tmp_path: Path
) -> None:
    elsewhere()
    back_up(engine, tmp_path / "copy")
    kept = (tmp_path / "copy").read_bytes()
    with pytest.raises(InvalidRequest, match="is there already"):
        back_up(engine, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == kept
    with pytest.raises(InvalidRequest, match="holds tables already"):
        restore(engine, tmp_path / "copy")
    assert sorted(path.name for path in tmp_path.iterdir() if "copy" in path.name) == ["copy"]


@pytest.mark.parametrize("content", [b"", b"not a database", b"PGDMP" * 100])
def test_what_is_no_copy_is_refused_and_leaves_the_database_empty(
    elsewhere: Elsewhere, tmp_path: Path, content: bytes
) -> None:
    other = elsewhere()
    (tmp_path / "copy").write_bytes(content)
    with pytest.raises((InvalidRequest, Unavailable)):
        restore(other, tmp_path / "copy")
    assert inspect(other).get_table_names() == []


def test_a_missing_file_or_program_is_named(
    engine: Engine, elsewhere: Elsewhere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidRequest, match="There is no file"):
        restore(elsewhere(), tmp_path / "none")
    if engine.dialect.name == "postgresql":
        monkeypatch.setenv("PATH", "")
        with pytest.raises(Unavailable, match="pg_dump is not on this machine"):
            back_up(engine, tmp_path / "copy")
