"""Catalogs into and out of the database, by revision. With `keys` and `audit`, the only SQL."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from sys import intern
from typing import Any, TypeAlias

from sqlalchemy import ColumnElement, Connection, Engine, delete, func, insert, or_, select, text, update

from costsvc.db.audit import AuditEntry, record
from costsvc.db.engine import POSTGRESQL, reading, writing
from costsvc.db.entries import CatalogContent
from costsvc.db.integrity import refuse_contradictions
from costsvc.db.rows import Row, Rows, content_hash, content_of, fingerprint, identity, rows_of
from costsvc.db.tables import (
    CatalogFilesRow,
    OfferPriceRow,
    OfferRow,
    ProviderRow,
    RevisionRow,
    SourceRow,
    Versioned,
)
from costsvc.errors import NotInCatalog, Unavailable

Change: TypeAlias = Callable[[CatalogContent | None], CatalogContent]
"""A catalog made from the one before it, or from none."""

_HOUSEKEEPING = frozenset({"row_id", "added_revision", "retired_revision"})
# Both databases bound the number of parameters of one statement; 32,766 is SQLite's.
_CHUNK = 5000
# An act of a person changes a few rows, and its record shows them; every revision keeps its rows, however many.
_MOST_RECORDED = 200


@dataclass(frozen=True, slots=True)
class StoreResult:
    """The revision that holds a catalog and the rows it took; all zero where nothing had changed."""

    revision: int
    added: int
    changed: int
    retired: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """One state of the catalog, as recorded when it was stored."""

    id: int
    created_at: datetime
    content_hash: str
    author: str
    note: str
    rows_added: int
    rows_changed: int
    rows_retired: int


@dataclass(frozen=True, slots=True)
class _Difference:
    """What a table needs to hold new contents: rows to retire by number, rows to add; `gone` are the former's texts."""

    retired: list[int]
    gone: list[str]
    added: list[Row]
    changed: int


_Differences: TypeAlias = Mapping[type[Versioned], _Difference]


class CatalogRepository:
    """The catalog's history in a database."""

    def __init__(self, engine: Engine, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._engine = engine
        self._now = now

    def newest_revision(self) -> int | None:
        """Number of the newest revision; None before the first. Cheap enough to ask each second."""
        with reading(self._engine) as connection:
            return _newest(connection)

    def revisions(self, *, limit: int = 100) -> tuple[Revision, ...]:
        """What was stored, the newest first."""
        query = select(*RevisionRow.__table__.columns).order_by(RevisionRow.id.desc()).limit(limit)
        with reading(self._engine) as connection:
            return tuple(Revision(**row) for row in connection.execute(query).mappings())

    def files_fingerprint(self) -> str | None:
        """Fingerprint of the files that the catalog was read from last; None where it was not."""
        with reading(self._engine) as connection:
            return connection.scalar(select(CatalogFilesRow.fingerprint))

    def load(self, revision: int | None = None) -> CatalogContent:
        """The catalog as it was at a revision, or at the newest.

        Raises
        ------
        NotInCatalog
            There is no such revision.
        Unavailable
            No catalog was stored yet, or the database does not answer.
        """
        with reading(self._engine) as connection:
            newest = _newest(connection)
            wanted = newest if revision is None else revision
            if newest is None or wanted is None:
                raise Unavailable("The database holds no catalog yet. Load one: `costsvc catalog load`.")
            if not 1 <= wanted <= newest:
                nearest = min(max(wanted, 1), newest)
                raise NotInCatalog(
                    "revision", str(wanted), [str(nearest)], listed_at=f"revisions 1 to {newest}"
                )
            return _content_at(connection, wanted)

    def content_hash(self, revision: int) -> str | None:
        """What a revision holds, in brief; None where there is no such revision."""
        query = select(RevisionRow.content_hash).where(RevisionRow.id == revision)
        with reading(self._engine) as connection:
            return connection.scalar(query)

    def load_after(self, known: CatalogContent, known_revision: int, revision: int) -> CatalogContent:
        """A later revision, read as its difference from one that is known.

        Offers that did not change, with their prices, are those of `known`; so is the rest, where nothing but offers
        and sources changed.
        """
        with reading(self._engine) as connection:
            changed = {
                table
                for table in _CATALOG_TABLES
                if _has_changed(connection, table, known_revision, revision)
            }
            later = _with_changed_offers(connection, known, known_revision, revision)
            beside = changed - _OF_OFFERS
            if not beside:
                return later
            # What is not of offers is read again where any of it changed: prices may number a million, these do not.
            reread = beside if beside == {SourceRow} else set(_CATALOG_TABLES) - _OF_OFFERS
            rows = _no_rows()
            for table in reread:
                rows[table] = _rows_at(connection, table, revision)
        rest = content_of(rows)
        if reread == {SourceRow}:
            return replace(later, sources=rest.sources)
        return replace(rest, offers=later.offers)

    def store(self, content: CatalogContent, *, author: str, note: str) -> StoreResult:
        """Make a catalog the newest revision, in one transaction; nothing happens where it already is.

        Raises
        ------
        InvalidCatalogFile
            The catalog contradicts itself.
        """
        return self.store_changed(lambda _before: content, author=author, note=note, files_fingerprint="")

    def store_changed(
        self, change: Change, *, author: str, note: str, files_fingerprint: str | None = None
    ) -> StoreResult:
        """Make the newest catalog, as `change` makes it of the one before, the newest revision.

        Other writers wait meanwhile, so nothing they wrote is lost. What `change` raises passes through, and
        then nothing is stored.

        Parameters
        ----------
        files_fingerprint : str, optional
            Of the files the catalog is read from; empty where it is from none, absent where `change` keeps
            what was read from them.
        """

        with writing(self._engine) as connection:
            _wait_for_other_writers(connection)
            if files_fingerprint is not None:
                _note_files(connection, files_fingerprint)
            newest = _newest(connection)
            content = change(None if newest is None else _content_at(connection, newest))
            return self._store(connection, newest, content, author=author, note=note)

    def _store(
        self, connection: Connection, newest: int | None, content: CatalogContent, *, author: str, note: str
    ) -> StoreResult:
        rows = rows_of(content)
        refuse_contradictions(content, rows)
        differences = {table: _difference(connection, table, rows[table]) for table in rows}
        changed = sum(difference.changed for difference in differences.values())
        result = StoreResult(
            revision=(newest or 0) + 1,
            added=sum(len(difference.added) for difference in differences.values()) - changed,
            changed=changed,
            retired=sum(len(difference.retired) for difference in differences.values()) - changed,
        )
        if newest is not None and not (result.added or result.changed or result.retired):
            return StoreResult(newest, 0, 0, 0)
        self._record(connection, result, rows, differences, author=author, note=note)
        for table, difference in differences.items():
            _apply(connection, table, difference, result.revision)
        return result

    def _record(
        self,
        connection: Connection,
        result: StoreResult,
        rows: Rows,
        differences: _Differences,
        *,
        author: str,
        note: str,
    ) -> None:
        counts = {
            "rows_added": result.added,
            "rows_changed": result.changed,
            "rows_retired": result.retired,
        }
        at = self._now()
        connection.execute(
            insert(RevisionRow).values(
                id=result.revision,
                created_at=at,
                content_hash=content_hash(rows),
                author=author,
                note=note,
                **counts,
            )
        )
        before, after = _recorded(differences) if result.revision > 1 else (None, {})
        record(
            connection,
            AuditEntry(
                at=at,
                actor=author,
                action="store catalog",
                subject=f"revision {result.revision}",
                before=before,
                after={**counts, **after},
            ),
        )


_CATALOG_TABLES: tuple[type[Versioned], ...] = tuple(Versioned.__subclasses__())


# The tables that offers stand in.
_OF_OFFERS: frozenset[type[Versioned]] = frozenset({ProviderRow, OfferRow, OfferPriceRow})


def _newest(connection: Connection) -> int | None:
    return connection.scalar(select(func.max(RevisionRow.id)))


def _content_at(connection: Connection, revision: int) -> CatalogContent:
    return content_of({table: _rows_at(connection, table, revision) for table in _CATALOG_TABLES})


def _has_changed(connection: Connection, table: type[Versioned], known_revision: int, revision: int) -> bool:
    query = select(table.row_id).where(_changed(table, known_revision, revision)).limit(1)
    return connection.scalar(query) is not None


def _changed(table: type[Versioned], known_revision: int, revision: int) -> ColumnElement[bool]:
    """Rows that came or went after one revision, up to another."""
    return or_(
        table.added_revision.between(known_revision + 1, revision),
        table.retired_revision.between(known_revision + 1, revision),
    )


def _with_changed_offers(
    connection: Connection, known: CatalogContent, known_revision: int, revision: int
) -> CatalogContent:
    ids = {
        *connection.scalars(select(OfferRow.id).where(_changed(OfferRow, known_revision, revision))),
        *connection.scalars(
            select(OfferPriceRow.offer_id).where(_changed(OfferPriceRow, known_revision, revision))
        ),
    }
    stored = _no_rows()
    for some in _chunks(sorted(ids)):
        stored[OfferRow] += _rows_at(connection, OfferRow, revision, OfferRow.id.in_(some))
        of_offer = OfferPriceRow.offer_id.in_(some)
        stored[OfferPriceRow] += _rows_at(connection, OfferPriceRow, revision, of_offer)
    kept = (offer for offer in known.offers if offer.id not in ids)
    offers = sorted((*kept, *content_of(stored).offers), key=lambda offer: offer.id)
    return replace(known, offers=tuple(offers))


def _no_rows() -> dict[type[Versioned], list[Row]]:
    return {table: [] for table in _CATALOG_TABLES}


def _wait_for_other_writers(connection: Connection) -> None:
    """On PostgreSQL; SQLite's transaction holds the one write lock from its first statement."""
    if connection.dialect.name == POSTGRESQL:
        # Conflicts with itself and lets readers pass.
        connection.execute(text("LOCK TABLE revision IN SHARE ROW EXCLUSIVE MODE"))


def _note_files(connection: Connection, fingerprint: str) -> None:
    connection.execute(delete(CatalogFilesRow))
    if fingerprint:
        connection.execute(insert(CatalogFilesRow).values(fingerprint=fingerprint))


def _contents(table: type[Versioned]) -> list[Any]:
    return [column for column in table.__table__.columns if column.name not in _HOUSEKEEPING]


def _rows_at(
    connection: Connection, table: type[Versioned], revision: int, *which: ColumnElement[bool]
) -> list[Row]:
    query = select(*_contents(table)).where(
        table.added_revision <= revision,
        or_(table.retired_revision.is_(None), table.retired_revision > revision),
        *which,
    )
    found = connection.execute(query)
    names = tuple(found.keys())
    return [dict(zip(names, map(_one_text, row), strict=True)) for row in found]


def _one_text(value: Any) -> Any:
    """A text that many rows hold, once: sources of prices are few, and prices may number a million."""
    return intern(value) if type(value) is str else value


def _difference(connection: Connection, table: type[Versioned], rows: Sequence[Row]) -> _Difference:
    """Compared as multisets: rows that repeat are kept as often as they are given."""
    query = select(table.row_id, *_contents(table)).where(table.retired_revision.is_(None))
    there: dict[str, list[tuple[int, tuple[str, ...]]]] = {}
    for stored in connection.execute(query).mappings():
        row = {name: stored[name] for name in stored if name != "row_id"}
        there.setdefault(fingerprint(row), []).append((stored["row_id"], identity(table, row)))
    added = [row for row in rows if not _taken(there, fingerprint(row))]
    retired = [(text, *kept) for text, same in there.items() for kept in same]
    gone = Counter(name for _, _, name in retired)
    come = Counter(identity(table, row) for row in added)
    return _Difference(
        [number for _, number, _ in retired], [text for text, _, _ in retired], added, (gone & come).total()
    )


def _recorded(differences: _Differences) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Rows as they were and as they are, by table, where they are few."""
    if sum(len(one.gone) + len(one.added) for one in differences.values()) > _MOST_RECORDED:
        return None, {}
    before = {table.__tablename__: one.gone for table, one in differences.items() if one.gone}
    after = {
        table.__tablename__: list(map(fingerprint, one.added))
        for table, one in differences.items()
        if one.added
    }
    return _read(before) or None, _read(after)


def _read(texts: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    return {name: [json.loads(text) for text in some] for name, some in texts.items()}


def _taken(there: dict[str, list[tuple[int, tuple[str, ...]]]], text: str) -> bool:
    """Whether one more row of this text is stored; it is then no longer offered to the next."""
    if same := there.get(text):
        same.pop()
        return True
    return False


def _apply(connection: Connection, table: type[Versioned], difference: _Difference, revision: int) -> None:
    """Retire first: a changed row's place must be free before its successor takes it."""
    for numbers in _chunks(difference.retired):
        connection.execute(update(table).where(table.row_id.in_(numbers)).values(retired_revision=revision))
    for rows in _chunks(difference.added):
        connection.execute(insert(table), [{**row, "added_revision": revision} for row in rows])


def _chunks(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (items[start : start + _CHUNK] for start in range(0, len(items), _CHUNK))
