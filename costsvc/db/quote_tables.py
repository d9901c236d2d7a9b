"""Tables of stored quotes: rows that are written once and never changed."""

from datetime import date, datetime

from sqlalchemy import ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from costsvc.db.columns import Base


class StoredQuoteRow(Base):
    """A quote that was kept, by what people search it by; its answer is in `StoredQuoteFormatRow`.

    `private_revision` is there where it was made with what its owner negotiated.
    """

    __tablename__ = "stored_quote"
    __table_args__ = (
        UniqueConstraint("owner", "idempotency_key"),
        Index("ix_stored_quote_owner_created_at", "owner", "created_at"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[str]
    idempotency_key: Mapped[str | None]
    request_hash: Mapped[str]
    created_at: Mapped[datetime]
    label: Mapped[str]
    model_id: Mapped[str]
    gpu_id: Mapped[str]
    as_of: Mapped[date]
    catalog_revision: Mapped[int]
    private_revision: Mapped[int | None]
    engine_version: Mapped[str]
    request_usd: Mapped[str]


class StoredQuoteFormatRow(Base):
    """The bytes of a stored quote in one format, as they were written once."""

    __tablename__ = "stored_quote_format"

    quote_id: Mapped[str] = mapped_column(ForeignKey("stored_quote.id", ondelete="CASCADE"), primary_key=True)
    suffix: Mapped[str] = mapped_column(primary_key=True)
    content: Mapped[bytes]
