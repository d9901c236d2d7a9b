"""Which catalog a command answers from."""

from pkgutil import resolve_name
from typing import cast

from costsvc.cli.environment import environment
from costsvc.db.snapshot import Catalog
from costsvc.ingest.files import catalog_root, read_catalog


def current_catalog() -> Catalog:
    """The newest catalog of the database that COSTSVC_DATABASE_URL names; without one, that of the files."""
    settings = environment()
    if "database_url" in settings.model_fields_set:
        # Imported by name, because quoting from files needs no database driver.
        return cast("Catalog", resolve_name("costsvc.cli.stored:stored_catalog")(settings))
    return Catalog(read_catalog(catalog_root(settings.catalog_dir)), revision=None)
