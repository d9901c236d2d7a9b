"""Workbooks: their writer is imported by name when the first is made, and takes three megabytes from then on."""

from datetime import date
from pkgutil import resolve_name
from typing import IO

from costsvc.db.snapshot import Catalog
from costsvc.quoting.request import QuoteRequest
from costsvc.quoting.tables.table import Table


def to_xlsx(table: Table) -> bytes:
    """A table as a workbook."""
    made: bytes = resolve_name("costsvc.quoting.tables.as_xlsx:to_xlsx")(table)
    return made


def save_xlsx(table: Table, to: IO[bytes]) -> None:
    """The same, written to a file row by row."""
    resolve_name("costsvc.quoting.tables.as_xlsx:save_xlsx")(table, to)


def error_workbook(text: str) -> bytes:
    """An error as a workbook of one cell."""
    made: bytes = resolve_name("costsvc.quoting.tables.as_xlsx:error_workbook")(text)
    return made


def quote_workbook(catalog: Catalog, request: QuoteRequest, today: date) -> bytes:
    """A quote as a workbook of live formulas."""
    made: bytes = resolve_name("costsvc.quoting.audit.workbook:quote_workbook")(catalog, request, today)
    return made


def template_workbook(base_url: str) -> bytes:
    """A workbook that pulls quotes."""
    made: bytes = resolve_name("costsvc.quoting.tables.template:template_workbook")(base_url)
    return made
