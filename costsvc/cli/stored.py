"""The catalog of a database, for commands that answer from one."""

from costsvc.db.engine import make_engine
from costsvc.db.repository import CatalogRepository
from costsvc.db.snapshot import Catalog
from costsvc.settings import Settings


def repository(settings: Settings) -> CatalogRepository:
    """The catalog's history in the database that the environment names."""
    return CatalogRepository(
        make_engine(settings.database_url.get_secret_value(), timeout_s=settings.database_timeout_s)
    )


def stored_catalog(settings: Settings) -> Catalog:
    """The newest revision."""
    stored = repository(settings)
    revision = stored.newest_revision()
    return Catalog(stored.load(revision), revision)
