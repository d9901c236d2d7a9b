"""What every listing shares: the day, sources, amounts, and filters that name the nearest word."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from pydantic import Field

from costsvc.db.entries import FactSource, Source
from costsvc.db.names import Index, normalised
from costsvc.db.snapshot import Catalog
from costsvc.ingest.entry import Strict
from costsvc.quoting.money import LEAST_DECIMALS


class Day(Strict):
    """The day whose catalog is shown."""

    as_of: date | None = Field(None, description="Day whose catalog is shown; absent: today (UTC).")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRow:
    """Where a fact was read; `field` is the fact, where the source covers one of several."""

    id: str
    title: str
    kind: str
    field: str | None = None
    url: str | None = None
    locator: str | None = None
    accessed: date | None = None


def as_printed(amount: Decimal) -> str:
    """An amount of the catalog with every digit it has, at least six decimals and never an exponent.

    Examples
    --------
    >>> as_printed(Decimal("7E-7")), as_printed(Decimal("2.5"))
    ('0.0000007', '2.500000')
    """
    text = format(amount, "f")
    whole, _, decimals = text.partition(".")
    return f"{whole}.{decimals.ljust(LEAST_DECIMALS, '0')}"


def known(amount: Decimal | None) -> str | None:
    return None if amount is None else as_printed(amount)


def facts(catalog: Catalog, facts: Iterable[FactSource]) -> tuple[SourceRow, ...]:
    return tuple(_source_row(catalog.source(fact.source_id), fact.field) for fact in facts)


def sources(catalog: Catalog, ids: Iterable[str]) -> tuple[SourceRow, ...]:
    return tuple(_source_row(catalog.source(id), None) for id in dict.fromkeys(ids))


def _source_row(source: Source, field: str | None) -> SourceRow:
    return SourceRow(
        id=source.id,
        title=source.title,
        kind=source.kind,
        field=field,
        url=source.url,
        locator=source.locator,
        accessed=source.accessed,
    )


def mentions(text: str | None, spellings: Iterable[str]) -> bool:
    return text is None or any(normalised(text) in normalised(spelling) for spelling in spellings)


def one_of(what: str, text: str | None, names: Iterable[str], listed_at: str) -> str | None:
    """A name as the catalog spells it.

    Raises
    ------
    NotInCatalog
        The nearest names: a misspelt filter must not look like an empty list.
    """
    if text is None:
        return None
    index: Index[str] = Index(what, ((name, (), name) for name in sorted(set(names))), listed_at=listed_at)
    return index.find(text)
