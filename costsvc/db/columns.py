"""Column types that come back equal from both databases, and the names of constraints."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, ClassVar

from sqlalchemy import JSON, BigInteger, DateTime, Dialect, Double, Integer, MetaData, Numeric, Text
from sqlalchemy.orm import DeclarativeBase
from sqlalchemy.types import TypeDecorator, TypeEngine

from costsvc.db.engine import SQLITE


class Money(TypeDecorator[Decimal]):
    """An exact decimal. SQLite would keep a number as binary floating point, so there it is text."""

    impl = Numeric
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(Text() if dialect.name == SQLITE else Numeric())

    def process_bind_param(self, value: Decimal | None, dialect: Dialect) -> Any:
        return format(value, "f") if value is not None and dialect.name == SQLITE else value

    def process_result_value(self, value: Any, dialect: Dialect) -> Decimal | None:
        return None if value is None else Decimal(value)


class Instant(TypeDecorator[datetime]):
    """A moment in UTC; SQLite keeps no zone, so it is put back on reading."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    """Common to all tables: names of constraints, so that migrations can address them, and column types."""

    metadata = MetaData(
        naming_convention={
            "pk": "pk_%(table_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
        }
    )
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        # SQLite numbers rows by itself only where the column is INTEGER, which there has 64 bits.
        int: BigInteger().with_variant(Integer(), SQLITE),
        float: Double(),
        Decimal: Money(),
        datetime: Instant(),
        str: Text(),
        dict[str, Any]: JSON(none_as_null=True),
        list[Any]: JSON(none_as_null=True),
    }
