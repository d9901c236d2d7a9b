"""Negotiated prices in the database: written by an owner's key, read for the same owner alone."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import TypeAdapter
from sqlalchemy import Connection, Engine, func, insert, or_, select, text, update

from costsvc.db.audit import AuditEntry, record
from costsvc.db.engine import POSTGRESQL, reading, writing
from costsvc.db.entries import PrivateOffer, PrivatePrices
from costsvc.db.private_tables import PrivateOfferRow, PrivateRevisionRow
from costsvc.errors import InvalidRequest, NotInCatalog

MAX_OFFERS: Final = 1000
"""Offers of one owner. Every replica holds all owners' in memory."""


Change = Callable[[PrivateOffer | None], PrivateOffer]
"""An offer made from the one before it, or from none."""

_DOCUMENT: TypeAdapter[PrivateOffer] = TypeAdapter(PrivateOffer)


class PrivateRepository:
    """Every owner's prices, and who wrote them when."""

    def __init__(self, engine: Engine, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._engine = engine
        self._now = now

    def newest(self) -> int:
        """Grows with each write of any owner. Cheap enough to ask each second."""
        with reading(self._engine) as connection:
            return connection.scalar(select(func.coalesce(func.max(PrivateRevisionRow.id), 0))) or 0

    def changed_since(self, newest: int) -> Mapping[str, int]:
        """Owners who wrote after `newest`, and the revision that each has now."""
        query = (
            select(PrivateRevisionRow.owner, func.max(PrivateRevisionRow.number))
            .where(PrivateRevisionRow.id > newest)
            .group_by(PrivateRevisionRow.owner)
        )
        with reading(self._engine) as connection:
            return dict(connection.execute(query).all())

    def load(self, owner: str, revision: int) -> PrivatePrices:
        """An owner's prices as they were.

        Raises
        ------
        NotInCatalog
            This owner has no such revision.
        """
        with reading(self._engine) as connection:
            newest = _newest_of(connection, owner)
            if not 1 <= revision <= newest:
                raise NotInCatalog(
                    "private_revision",
                    str(revision),
                    [str(min(max(revision, 1), newest))] if newest else [],
                    listed_at=f"private revisions 1 to {newest}" if newest else None,
                )
            rows = connection.scalars(
                select(PrivateOfferRow.document)
                .where(
                    PrivateOfferRow.owner == owner,
                    PrivateOfferRow.added_number <= revision,
                    or_(PrivateOfferRow.retired_number.is_(None), PrivateOfferRow.retired_number > revision),
                )
                .order_by(PrivateOfferRow.offer_id)
            ).all()
        return PrivatePrices(owner=owner, revision=revision, offers=tuple(_offers(rows)))

    def store(self, owner: str, offer_id: str, change: Change, *, author: str, action: str) -> int:
        """Make an offer as `change` makes it of the one before; the revision that holds it.

        Writers of private prices wait for one another, readers for nobody. What `change` raises passes
        through, and then nothing is stored.

        Raises
        ------
        InvalidRequest
            The owner has as many offers as one may have.
        """
        with writing(self._engine) as connection:
            if connection.dialect.name == POSTGRESQL:
                connection.execute(text("LOCK TABLE private_revision IN SHARE ROW EXCLUSIVE MODE"))
            current = _current(connection, owner, offer_id)
            before = None if current is None else _DOCUMENT.validate_python(current)
            after = change(before)
            newest = _newest_of(connection, owner)
            if after == before:
                return newest
            if before is None:
                _refuse_too_many(connection, owner)
            at, number = self._now(), newest + 1
            connection.execute(
                insert(PrivateRevisionRow).values(owner=owner, number=number, created_at=at, author=author)
            )
            connection.execute(
                update(PrivateOfferRow).where(*_is_current(owner, offer_id)).values(retired_number=number)
            )
            document = _DOCUMENT.dump_python(after, mode="json")
            connection.execute(
                insert(PrivateOfferRow).values(
                    owner=owner, offer_id=offer_id, document=document, added_number=number
                )
            )
            subject = f"{offer_id} of {owner}, private revision {number}"
            entry = AuditEntry(
                at=at, actor=author, action=action, subject=subject, before=current, after=document
            )
            record(connection, entry)
            return number


def _is_current(owner: str, offer_id: str) -> tuple[Any, ...]:
    return (
        PrivateOfferRow.owner == owner,
        PrivateOfferRow.offer_id == offer_id,
        PrivateOfferRow.retired_number.is_(None),
    )


def _current(connection: Connection, owner: str, offer_id: str) -> dict[str, Any] | None:
    query = select(PrivateOfferRow.document).where(*_is_current(owner, offer_id))
    return connection.scalar(query)


def _newest_of(connection: Connection, owner: str) -> int:
    query = select(func.max(PrivateRevisionRow.number)).where(PrivateRevisionRow.owner == owner)
    return connection.scalar(query) or 0


def _refuse_too_many(connection: Connection, owner: str) -> None:
    query = (
        select(func.count())
        .select_from(PrivateOfferRow)
        .where(PrivateOfferRow.owner == owner, PrivateOfferRow.retired_number.is_(None))
    )
    if (connection.scalar(query) or 0) >= MAX_OFFERS:
        raise InvalidRequest(
            f"An owner may have {MAX_OFFERS:,} private offers, and you have as many. Add prices to one of "
            "them (POST /prices/{id}) instead of a new offer.",
            field="private",
        )


def _offers(documents: Iterable[dict[str, Any]]) -> Iterable[PrivateOffer]:
    return (_DOCUMENT.validate_python(document) for document in documents)
