"""A portfolio over months, as JSON, CSV or a workbook."""

from typing import Any, Final

from litestar import Request, Response, post
from litestar.di import NamedDependency

from costsvc.api.bodies import json_object
from costsvc.api.door import HEAVY
from costsvc.api.formats import View, presented, with_suffixes
from costsvc.api.openapi import SHOWN_AS, NoParameters, body_of, documented, query_parameters
from costsvc.api.rendering import revision_headers
from costsvc.api.service import Service
from costsvc.api.viewer import catalog_for
from costsvc.quoting.budget import Budget, budget_rows, budget_table, parse_budget
from costsvc.quoting.given import refuse_unknown
from costsvc.quoting.tables.cells import written
from costsvc.quoting.tables.table import Column

_VIEW: Final = View(table=lambda listed: budget_table(listed["items"]))
_COLUMNS: Final[tuple[Column, ...]] = tuple(budget_table(()).columns)


@post(
    with_suffixes("/budget", _VIEW),
    status_code=200,
    opt=HEAVY,
    summary="A portfolio over months: monthly amounts and yearly totals, with low and high",
    operation_class=documented(
        "Budget", parameters=query_parameters(NoParameters, more=SHOWN_AS), body=body_of(Budget)
    ),
)
async def post_budget(request: Request[Any, Any, Any], service: NamedDependency[Service]) -> Response[bytes]:
    """Price each use once, and spread it over its months."""
    shown = presented(request, _VIEW)
    refuse_unknown(shown.given, ())
    budget = parse_budget(await json_object(request))
    catalog = await catalog_for(request, service)

    def made() -> bytes:
        rows = budget_rows(catalog, budget, service.today())
        if shown.format.media_type == "application/json":
            return shown.rendered({"items": [_plain(row) for row in rows]})
        return shown.rendered({"items": rows})

    headers = {"Cache-Control": "no-store", **revision_headers(catalog)}
    return Response(await service.heavy.run(made), media_type=shown.format.content_type, headers=headers)


def _plain(row: Any) -> dict[str, Any]:
    """Decimals as text; what a row lacks is null."""
    cells = {column.name: row.get(column.name) for column in _COLUMNS}
    exact = ("usd", "low_usd", "high_usd", "requests")
    return cells | {name: written(cells[name], "number") or None for name in exact}
