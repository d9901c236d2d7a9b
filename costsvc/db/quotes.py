"""Stored quotes: written once, never changed, read by their owner."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime

from sqlalchemy import ColumnElement, Connection, Engine, RowMapping, insert, or_, select
from sqlalchemy.exc import IntegrityError

from costsvc.db.engine import reading, writing
from costsvc.db.quote_tables import StoredQuoteFormatRow, StoredQuoteRow
from costsvc.errors import IdempotencyConflict, NotStored

_COLUMNS = StoredQuoteRow.__table__.columns


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredQuote:
    """What a stored quote is found by. `request_usd` is text of a decimal.

    `owner` alone may read it where it was made with negotiated prices (`private_revision`); any other one an
    admin may read as well.
    """

    id: str
    owner: str
    idempotency_key: str | None
    request_hash: str
    created_at: datetime
    label: str
    model_id: str
    gpu_id: str
    as_of: date
    catalog_revision: int
    engine_version: str
    request_usd: str
    private_revision: int | None = None


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads: an owner, or an admin, who also reads what others made from public prices alone."""

    owner: str
    is_admin: bool = False

    @property
    def may_read(self) -> ColumnElement[bool]:
        """The condition on a stored quote."""
        own = StoredQuoteRow.owner == self.owner
        return or_(own, StoredQuoteRow.private_revision.is_(None)) if self.is_admin else own


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteSearch:
    """Which stored quotes; None does not narrow. `label` is part of one; moments are those of storing."""

    label: str | None = None
    model_id: str | None = None
    since: datetime | None = None
    before: datetime | None = None
    limit: int = 100


class QuoteRepository:
    """Stored quotes in the database."""

    def __init__(self, engine: Engine, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._engine = engine
        self._now = now

    def store(
        self, quote: StoredQuote, formats: Callable[[StoredQuote], Mapping[str, bytes]]
    ) -> tuple[StoredQuote, bool]:
        """Keep a quote; `formats` makes its bytes once the moment is known.

        Returns
        -------
        tuple
            The quote, and whether it is new: the same idempotency key gives the first one again.

        Raises
        ------
        IdempotencyConflict
            The key was used for another request.
        """
        stamped = replace(quote, created_at=self._now())
        known = self._earlier(stamped)
        if known is not None:
            return known, False
        content = formats(stamped)
        try:
            with writing(self._engine) as connection:
                connection.execute(insert(StoredQuoteRow).values(**_values(stamped)))
                rows = [
                    {"quote_id": stamped.id, "suffix": suffix, "content": bytes_}
                    for suffix, bytes_ in content.items()
                ]
                connection.execute(insert(StoredQuoteFormatRow), rows)
        except IntegrityError:
            # Another call with this key was faster.
            known = self._earlier(stamped)
            if known is None:
                raise
            return known, False
        return stamped, True

    def content(self, id: str, suffix: str, reader: Reader) -> tuple[StoredQuote, bytes]:
        """The bytes of a quote in a format.

        Raises
        ------
        NotStored
            There is no such quote that this reader may read.
        """
        with reading(self._engine) as connection:
            found = self._found(connection, id, reader)
            query = select(StoredQuoteFormatRow.content).where(
                StoredQuoteFormatRow.quote_id == id, StoredQuoteFormatRow.suffix == suffix
            )
            return found, connection.execute(query).scalar_one()

    def listed(self, search: QuoteSearch, reader: Reader) -> list[StoredQuote]:
        """Quotes that a reader may read, the newest first."""
        query = select(*_COLUMNS).order_by(StoredQuoteRow.created_at.desc(), StoredQuoteRow.id)
        query = query.where(reader.may_read)
        if search.label is not None:
            query = query.where(StoredQuoteRow.label.icontains(search.label, autoescape=True))
        if search.model_id is not None:
            query = query.where(StoredQuoteRow.model_id == search.model_id)
        if search.since is not None:
            query = query.where(StoredQuoteRow.created_at >= search.since)
        if search.before is not None:
            query = query.where(StoredQuoteRow.created_at < search.before)
        with reading(self._engine) as connection:
            return [_quote(row) for row in connection.execute(query.limit(search.limit)).mappings()]

    def _found(self, connection: Connection, id: str, reader: Reader) -> StoredQuote:
        query = select(*_COLUMNS).where(StoredQuoteRow.id == id, reader.may_read)
        found = connection.execute(query).mappings().one_or_none()
        if found is None:
            raise NotStored(id)
        return _quote(found)

    def _earlier(self, quote: StoredQuote) -> StoredQuote | None:
        """What was stored under the same idempotency key."""
        if quote.idempotency_key is None:
            return None
        query = select(*_COLUMNS).where(
            StoredQuoteRow.owner == quote.owner, StoredQuoteRow.idempotency_key == quote.idempotency_key
        )
        with reading(self._engine) as connection:
            found = connection.execute(query).mappings().one_or_none()
        if found is None:
            return None
        earlier = _quote(found)
        if earlier.request_hash != quote.request_hash:
            raise IdempotencyConflict(
                f"Idempotency-Key '{quote.idempotency_key}' was used for another request, which is quote "
                f"{earlier.id}. Take a new key for a new request.",
                details={"id": earlier.id},
            )
        return earlier


def _values(quote: StoredQuote) -> dict[str, object]:
    return {column.name: getattr(quote, column.name) for column in _COLUMNS}


def _quote(row: RowMapping) -> StoredQuote:
    return StoredQuote(**row)
