"""In which order a list is shown, and which part of it."""

from collections.abc import Callable, Iterable
from dataclasses import fields
from decimal import Decimal
from difflib import get_close_matches
from itertools import islice
from typing import Any, Final, Protocol, TypeVar

from pydantic import Field

from costsvc.errors import InvalidRequest
from costsvc.quoting.listing.common import Day
from costsvc.quoting.request import Text

MAX_LISTED: Final = 10_000
PAGING: Final = ("limit", "after")

_DOWNWARD: Final = "-"
# What a row has several of, a list cannot be sorted by.
_SEVERAL: Final = (tuple, dict)


class Ordered(Day):
    """The order of a list, and a page of it."""

    sort: Text | None = Field(
        None,
        description="Member of the entries to sort by, from the smallest, or with - before it from the largest; "
        "what is not known comes last. Absent: by id.",
    )
    limit: int | None = Field(None, ge=1, le=MAX_LISTED, description="Most entries of a page; absent: all.")
    after: Text | None = Field(
        None, description="Only entries after the one of this id, as the last one of the page before."
    )


class Listed(Protocol):
    """An entry of a list."""

    @property
    def id(self) -> str:
        """What no other entry of the list is called."""


Row = TypeVar("Row", bound=Listed)


def part(rows: Iterable[Row], wanted: Ordered, kind: type[Row]) -> list[Row]:
    """What is asked for of rows that come in order of their ids.

    Raises
    ------
    InvalidRequest
        Rows cannot be sorted by that, or none of them has the id after which a page begins.
    """
    if wanted.sort is None:
        after = wanted.after
        return list(islice((row for row in rows if after is None or row.id > after), wanted.limit))
    ordered = _sorted(rows, wanted.sort, kind)
    return list(islice(ordered, _begin(ordered, wanted.after), None))[: wanted.limit]


def _sorted(rows: Iterable[Row], sort: str, kind: type[Row]) -> list[Row]:
    name = sort.removeprefix(_DOWNWARD)
    if name not in (possible := _sortable(kind)):
        near = get_close_matches(name, possible, n=1)
        meant = f" Did you mean {near[0]}?" if near else ""
        raise InvalidRequest(
            f"sort is '{sort}', which no entry of this list has.{meant} Choose one of {', '.join(possible)}, "
            f"with {_DOWNWARD} before it from the largest.",
            field="sort",
        )
    place = _place(name)
    known: list[Row] = []
    unknown: list[Row] = []
    for row in rows:
        (unknown if getattr(row, name) is None else known).append(row)
    # Rows that are alike stay in order of their ids, also from the largest.
    known.sort(key=lambda row: place(getattr(row, name)), reverse=sort.startswith(_DOWNWARD))
    return known + unknown


def _sortable(kind: type[Any]) -> list[str]:
    return [field.name for field in fields(kind) if getattr(field.type, "__origin__", None) not in _SEVERAL]


def _place(name: str) -> Callable[[Any], Any]:
    """How values of a member compare: amounts of money, which are texts, as numbers."""
    if "usd" in name.split("_"):
        return Decimal
    return lambda value: value.casefold() if isinstance(value, str) else value


def _begin(ordered: list[Row], after: str | None) -> int:
    if after is None:
        return 0
    for number, row in enumerate(ordered):
        if row.id == after:
            return number + 1
    raise InvalidRequest(
        f"after is '{after}', but this list has no such entry, so its next page is not known. Begin again "
        "without after.",
        field="after",
    )
