"""A portfolio over months: models, their traffic and its growth, to a monthly table and yearly totals.

Each amount is rounded once, half to even, to cents; every total is the sum of the rounded amounts shown.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from typing import Annotated, Any, Final, Self

from pydantic import Field, ValidationError, model_validator

from costsvc.db.snapshot import Catalog
from costsvc.ingest.entry import Strict
from costsvc.ingest.faults import invalid_request
from costsvc.quoting.flat import ERROR
from costsvc.quoting.quote import ENGINE_VERSION
from costsvc.quoting.rows import RowMaker
from costsvc.quoting.tables.table import Column, Row, Table, numbers, texts
from costsvc.quoting.words import counted

MAX_LINES: Final = 200
MAX_MONTHS: Final = 60
# What the most requests, grown the fastest for the longest, need with their cents.
_DIGITS: Final = 120
_CENT: Final = Decimal("0.01")
_TOKENS_PER_MTOK: Final = Decimal(1_000_000)
_KINDS: Final = ("input", "cached_input", "output")
_MONTHS_OF_YEAR: Final = 12

COLUMNS: Final = (
    Column("as_of", "day"),
    *numbers("catalog_revision"),
    *texts("engine_version", "month", "label", "model", "gpu"),
    *numbers("requests", "input_mtok", "cached_input_mtok", "output_mtok"),
    *numbers("usd", "low_usd", "high_usd"),
    *texts(ERROR),
)


class BudgetLine(Strict):
    """One use: a quote's request, and how often it comes."""

    label: Annotated[str, Field(min_length=1, max_length=200)] = Field(description="What it is for.")
    quote: dict[str, Any] = Field(description="Parameters of a quote, as in POST /quote.")
    requests_per_month: float = Field(
        gt=0, le=1e15, allow_inf_nan=False, description="Requests in the first month. [requests]"
    )
    monthly_growth: float = Field(
        0.0, gt=-1, le=10, allow_inf_nan=False, description="Growth from month to month: 0.05 is 5 %. [1]"
    )
    starts: int = Field(1, ge=1, le=MAX_MONTHS, description="The month, from 1, in which it begins.")


class Budget(Strict):
    """A portfolio and its months."""

    first_month: str = Field(
        pattern=r"^2[0-9]{3}-(0[1-9]|1[0-2])$", examples=["2027-01"], description="Such as 2027-01."
    )
    months: int = Field(12, ge=1, le=MAX_MONTHS, description="How many.")
    lines: list[BudgetLine] = Field(min_length=1, max_length=MAX_LINES, description="The uses.")

    @model_validator(mode="after")
    def labels_differ(self) -> Self:
        """A row is found by its label."""
        labels = [line.label for line in self.lines]
        if twice := sorted({label for label in labels if labels.count(label) > 1}):
            raise ValueError(f"label '{twice[0]}' stands twice; name each use once")
        return self


def parse_budget(given: Mapping[str, Any]) -> Budget:
    """Read a budget.

    Raises
    ------
    InvalidRequest
        Each field that is wrong, in a sentence.
    """
    try:
        return Budget.model_validate(dict(given))
    except ValidationError as error:
        raise invalid_request(error, Budget) from error


def budget_rows(catalog: Catalog, budget: Budget, today: date) -> list[Row]:
    """Rows of each month, its total, and each calendar year's total.

    A use that cannot be priced has its reason in its rows and adds nothing to a total, which then says so.
    """
    with localcontext(prec=_DIGITS):
        return list(_rows(catalog, budget, today))


def _rows(catalog: Catalog, budget: Budget, today: date) -> Iterator[Row]:
    maker = RowMaker(catalog, today)
    priced = {line.label: maker.row(line.quote) for line in budget.lines}
    head = {
        "as_of": today.isoformat(),
        "catalog_revision": catalog.revision,
        "engine_version": ENGINE_VERSION,
    }
    years: dict[str, list[Row]] = {}
    for number in range(1, budget.months + 1):
        month = _month(budget.first_month, number)
        rows = [
            {**head, **_line(line, priced[line.label], number), "month": month}
            for line in budget.lines
            if line.starts <= number
        ]
        yield from rows
        total = {**head, **_total(rows, "total"), "month": month}
        yield total
        years.setdefault(month[:4], []).append(total)
    for year, totals in years.items():
        yield {**head, **_total(totals, "year"), "month": year}


def budget_table(rows: Any) -> Table:
    """The rows as a table."""
    return Table(name="budget", row_name="row", columns=COLUMNS, rows=rows)


def _line(line: BudgetLine, priced: Row, number: int) -> dict[str, Any]:
    """One use in one month: whole requests, tokens, and money by low, price and high."""
    growth = Decimal(repr(1.0 + line.monthly_growth)) ** (number - line.starts)
    requests = (Decimal(repr(line.requests_per_month)) * growth).quantize(Decimal(1), ROUND_HALF_EVEN)
    shown = {
        "label": line.label,
        "model": priced.get("model"),
        "gpu": priced.get("gpu"),
        "requests": requests,
    }
    if priced[ERROR]:
        return {**shown, ERROR: priced[ERROR]}
    cached = Decimal(repr(priced["cached_input_tokens"]))
    tokens = {
        "input": Decimal(repr(priced["input_tokens"])) - cached,
        "cached_input": cached,
        "output": Decimal(repr(priced["output_tokens"])),
    }
    mtok = {kind: requests * tokens[kind] / _TOKENS_PER_MTOK for kind in _KINDS}
    money = {
        name: _cents(sum(mtok[kind] * Decimal(priced[f"{kind}{bound}_usd_per_mtok"]) for kind in _KINDS))
        for name, bound in (("usd", ""), ("low_usd", "_low"), ("high_usd", "_high"))
    }
    volumes = {f"{kind}_mtok": float(mtok[kind]) for kind in _KINDS}
    return {**shown, **volumes, **money, ERROR: ""}


def _total(rows: Sequence[Row], label: str) -> dict[str, Any]:
    """Sums of what is shown, so that a reader's own sum is the same."""
    names = ("requests", "input_mtok", "cached_input_mtok", "output_mtok", "usd", "low_usd", "high_usd")
    added = {name: sum(row[name] for row in rows if row.get(name) is not None) for name in names}
    failed = [row for row in rows if row.get(ERROR)]
    return {
        "label": label,
        **added,
        ERROR: f"{counted(len(failed), 'row')} without a price" if failed else "",
    }


def _cents(amount: Decimal | int) -> Decimal:
    return Decimal(amount).quantize(_CENT, ROUND_HALF_EVEN)


def _month(first: str, number: int) -> str:
    year, month = (int(part) for part in first.split("-"))
    years, rest = divmod(month - 1 + number - 1, _MONTHS_OF_YEAR)
    return f"{year + years:04d}-{rest + 1:02d}"
