"""The workbook that pulls quotes from this service."""

from typing import Any

from litestar import Request, Response, route

from costsvc.api.formats import FORMATS
from costsvc.api.openapi import READ, NoParameters, documented, query_parameters
from costsvc.api.rendering import given_in_query
from costsvc.quoting.given import refuse_unknown
from costsvc.quoting.workbooks import template_workbook


@route(
    "/template.xlsx",
    http_method=READ,
    sync_to_thread=True,
    summary="A workbook that pulls quotes: Excel, LibreOffice, Power Query, Google Sheets",
    operation_class=documented("Template", parameters=query_parameters(NoParameters)),
)
def get_template(request: Request[Any, Any, Any]) -> Response[bytes]:
    """The workbook, which asks where it came from."""
    refuse_unknown(given_in_query(request), ())
    content = template_workbook(str(request.base_url).rstrip("/"))
    headers = {"Cache-Control": "no-store"}
    return Response(content, media_type=FORMATS["xlsx"].content_type, headers=headers)
