"""While replicas change one at a time, the version before works with the new schema: a migration only adds.

What no version that may still run uses can go; the migration that takes it away is then excepted here, by name.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, inspect

from costsvc.db.engine import make_engine
from costsvc.db.migrate import upgrade
from costsvc.db.schema import scripts


@dataclass(frozen=True, slots=True)
class Table:
    """Columns by name, and the rules that rows are held to."""

    columns: dict[str, Any]
    rules: frozenset[str]


def _revisions() -> list[str]:
    config = Config()
    config.set_main_option("script_location", str(scripts()))
    config.set_main_option("path_separator", "os")
    return [one.revision for one in ScriptDirectory.from_config(config).walk_revisions()][::-1]


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Table]]:
    """Every table by name, by revision of the schema."""
    engine = make_engine(f"sqlite:///{tmp_path_factory.mktemp('schemas') / 'costsvc.db'}")
    found = {}
    for revision in _revisions():
        upgrade(engine, revision)
        found[revision] = _tables(engine)
    engine.dispose()
    return found


def _tables(engine: Engine) -> dict[str, Table]:
    seen = inspect(engine)
    return {
        name: Table(
            columns={one["name"]: one for one in seen.get_columns(name)},
            rules=frozenset(
                repr(rule)
                for rule in (
                    seen.get_pk_constraint(name),
                    *seen.get_foreign_keys(name),
                    *seen.get_unique_constraints(name),
                    *seen.get_check_constraints(name),
                    *((one["name"], one["column_names"]) for one in seen.get_indexes(name) if one["unique"]),
                )
            ),
        )
        for name in seen.get_table_names()
        if name != "alembic_version"
    }


@pytest.mark.parametrize(("old", "new"), list(pairwise(_revisions())))
def test_a_migration_only_adds(schemas: dict[str, dict[str, Table]], old: str, new: str) -> None:
    for name, before in schemas[old].items():
        assert name in schemas[new], f"{name} is gone"
        after = schemas[new][name]
        assert before.columns.keys() <= after.columns.keys(), f"a column of {name} is gone"
        for column, now in after.columns.items():
            was = before.columns.get(column)
            if was is None:
                assert now["nullable"] or now["default"] is not None, f"{name}.{column} has to be filled"
            else:
                assert repr(now["type"]) == repr(was["type"]), f"{name}.{column} is of another type"
                assert now["nullable"] >= was["nullable"], f"{name}.{column} has to be filled now"
        assert after.rules <= before.rules, f"{name} refuses what it took before"
