"""New models from their configurations."""

from typing import Any

from litestar import Request, Response, post
from litestar.di import NamedDependency
from pydantic import Field

from costsvc.api.auth import needs
from costsvc.api.bodies import json_object
from costsvc.api.openapi import body_of, documented, query_parameters
from costsvc.api.rendering import given_in_query, uncached
from costsvc.api.service import Service
from costsvc.api.writes import WRITE_PROBLEMS, created, publish_at_once
from costsvc.db.keys import ApiKey
from costsvc.ingest.entry import Strict
from costsvc.ingest.hugging_face.given import ImportedConfig
from costsvc.ingest.hugging_face.importing import import_config
from costsvc.quoting.given import parse_filter
from costsvc.quoting.importing import import_answer, named_in_catalog, with_model
from costsvc.quoting.posting import parse_body


class ImportOptions(Strict):
    """How a configuration is imported."""

    dry_run: bool = Field(False, description="Answer what would be written, and write nothing.")


@post(
    "/models/import",
    summary="A new model from its config.json (key of scope catalog-write)",
    dependencies={"author": needs("catalog-write")},
    operation_class=documented(
        "ImportedModel",
        parameters=query_parameters(ImportOptions),
        body=body_of(ImportedConfig),
        more_problems=WRITE_PROBLEMS,
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
    await publish_at_once(request, lambda catalog: with_model(catalog, imported), author, service)
    catalog = service.catalog
    shown = import_answer(imported, written=True, revision=catalog.revision)
    return created(request, catalog, "/models", imported.file.id, shown)
