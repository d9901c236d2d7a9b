"""The audit workbook: a quote whose prices are live formulas over inputs, assumptions and facts."""

import io
from datetime import date
from typing import Any, Final

from costsvc.db.snapshot import Catalog
from costsvc.quoting.answer import grounds
from costsvc.quoting.audit.frame import Frame
from costsvc.quoting.audit.live import live_quote
from costsvc.quoting.audit.plan import plan_of
from costsvc.quoting.audit.quote_sheet import write_quote
from costsvc.quoting.audit.sheets import name_moves, write_band, write_sensitivity
from costsvc.quoting.audit.tables import (
    write_attribution,
    write_inputs,
    write_points,
    write_records,
    write_terms,
)
from costsvc.quoting.bill import bill_of
from costsvc.quoting.choice import choose
from costsvc.quoting.flat import quote_row, quote_table
from costsvc.quoting.gpu_price import price_of
from costsvc.quoting.quote import make_quote
from costsvc.quoting.request import QuoteRequest
from costsvc.quoting.scenario import resolve
from costsvc.quoting.tables.as_xlsx import new_workbook, to_xlsx

# Columns of the sources with their widths. [characters]
_SOURCES: Final = {"id": 26, "title": 44, "kind": 14, "url": 44, "locator": 44, "accessed": 12, "covers": 80}


def quote_workbook(catalog: Catalog, request: QuoteRequest, today: date) -> bytes:
    """A quote as a workbook that computes it; where there is none of its kind, its row.

    Raises
    ------
    CostsvcError
        There is no such quote.
    """
    if request.attribution == "marginal" and request.kv_cache and request.speculation == "off":
        return audit_workbook(catalog, request, today)
    return to_xlsx(quote_table([quote_row(make_quote(catalog, request, today))]))


def audit_workbook(catalog: Catalog, request: QuoteRequest, today: date) -> bytes:
    """A quote as a workbook that computes it.

    Raises
    ------
    CostsvcError
        There is no such quote, or it is of a kind that has no such workbook.
    """
    answer: Any = make_quote(catalog, request, today)
    scenario = resolve(catalog, request, today)
    price, choice = price_of(catalog, scenario), choose(scenario)
    bill = bill_of(scenario, choice, price)
    live = live_quote(scenario, choice, price, bill)
    saved = answer["prefix_caching"].get("savings")
    example = answer["prefix_caching"].get("example_hit_rate") if saved else None
    if example is not None:
        live.inputs.add("example_hit_rate", example, "1", "live", "assumption: example_hit_share")
    plan = plan_of(scenario, choice, live, example)
    band = grounds.error_band(catalog, scenario)
    buffer = io.BytesIO()
    book = new_workbook(buffer)
    frame = Frame(book, answer, live, plan, band)
    name_moves(frame)
    write_points(frame)
    write_quote(frame, write_attribution(frame))
    write_sensitivity(frame)
    write_inputs(frame)
    write_terms(frame)
    write_band(frame)
    write_records(frame, "Sources", answer["sources"], _SOURCES)
    book.close()
    return buffer.getvalue()
