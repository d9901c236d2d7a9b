"""Tables of negotiated prices: an owner's alone, by revisions of that owner's own."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from costsvc.db.columns import Base

_CURRENT = text("retired_number IS NULL")


class PrivateRevisionRow(Base):
    """One state of an owner's prices. `id` counts over all owners, so that one look finds any change."""

    __tablename__ = "private_revision"
    __table_args__ = (UniqueConstraint("owner", "number"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    owner: Mapped[str]
    number: Mapped[int]
    created_at: Mapped[datetime]
    author: Mapped[str]


class PrivateOfferRow(Base):
    """An offer with its history and sources, as it was from one revision of its owner to another."""

    __tablename__ = "private_offer"
    __table_args__ = (
        CheckConstraint("retired_number > added_number", name="retired_later"),
        Index(
            "ix_private_offer_current",
            "owner",
            "offer_id",
            unique=True,
            postgresql_where=_CURRENT,
            sqlite_where=_CURRENT,
        ),
    )

    row_id: Mapped[int] = mapped_column(primary_key=True)
    owner: Mapped[str]
    offer_id: Mapped[str]
    document: Mapped[dict[str, Any]]
    added_number: Mapped[int]
    retired_number: Mapped[int | None]
