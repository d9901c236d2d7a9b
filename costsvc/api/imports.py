"""New models from their configurations."""

from typing import Any, Final
from urllib.parse import quote

from litestar import Request, Response, post
from litestar.concurrency import sync_to_thread
from litestar.di import NamedDependency
from pydantic import BaseModel, ConfigDict, Field

from costsvc.api.auth import needs
from costsvc.api.bodies import json_object
from costsvc.api.openapi import body_of, documented, query_parameters
from costsvc.api.rendering import given_in_query, uncached
from costsvc.api.service import Service
from costsvc.db.keys import ApiKey
from costsvc.ingest.hugging_face.given import ImportedConfig
from costsvc.ingest.hugging_face.importing import ImportedModel, import_config
from costsvc.quoting.given import parse_filter
from costsvc.quoting.importing import import_answer, named_in_catalog, with_model
from costsvc.quoting.posting import parse_body
from costsvc.quoting.publishing import publish

_WRITE_PROBLEMS: Final = (401, 403, 422)


class ImportOptions(BaseModel):
    """How a configuration is imported."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    dry_run: bool = Field(False, description="Answer what would be written, and write nothing.")


@post(
    "/models/import",
    summary="A new model from its config.json (key of scope catalog-write)",
    dependencies={"author": needs("catalog-write")},
    operation_class=documented(
        "ImportedModel",
        parameters=query_parameters(ImportOptions),
        body=body_of(ImportedConfig),
        more_problems=_WRITE_PROBLEMS,
        success=201,
        also=200,
    ),
)
async def post_import(
    request: Request[Any, Any, Any], author: NamedDependency[ApiKey], service: NamedDependency[Service]
) -> Response[bytes]:
    """Add a model, or show what would be added."""
    options = parse_filter(ImportOptions, given_in_query(request))
    await json_object(request, with_infinity=True)
    posted = parse_body(ImportedConfig, await request.body())
    imported = named_in_catalog(service.catalog, import_config(posted, service.today()))
    if options.dry_run:
        with_model(service.catalog, imported)
        shown = import_answer(imported, written=False, revision=service.catalog.revision)
        return uncached(request, service.catalog, shown)
    await sync_to_thread(_store, service, imported, author, f"{request.method} {request.scope['path']}")
    shown = import_answer(imported, written=True, revision=service.catalog.revision)
    response = uncached(request, service.catalog, shown, status=201)
    response.headers["Location"] = f"/models/{quote(imported.file.id)}"
    return response


def _store(service: Service, imported: ImportedModel, author: ApiKey, note: str) -> None:
    """Store a changed catalog and take it at once, so that the next read shows it."""
    publish(
        service.repository,
        lambda catalog: with_model(catalog, imported),
        author=f"key {author.id} ({author.label})",
        note=note,
    )
    service.snapshots.refresh()
