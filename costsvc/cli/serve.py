"""Starting the service: the database is prepared once, by the parent, before any worker answers."""

import click
import uvicorn

from costsvc.cli.catalogs import environment
from costsvc.db.engine import make_engine
from costsvc.db.migrate import upgrade
from costsvc.db.repository import CatalogRepository
from costsvc.ingest.files import catalog_root, read_catalog
from costsvc.ingest.fingerprint import files_fingerprint
from costsvc.quoting.publishing import publish_files
from costsvc.settings import Settings

_APP = "costsvc.app:create_app"


@click.command
@click.option("--host", help="Address to listen on; absent: COSTSVC_HOST, else 127.0.0.1.")
@click.option("--port", type=click.IntRange(0, 65_535), help="Port; absent: COSTSVC_PORT, else 8000.")
@click.option("--workers", type=click.IntRange(1, 256), help="Processes; absent: COSTSVC_WORKERS, else 1.")
@click.option(
    "--no-migrate",
    is_flag=True,
    help="Leave the database as it is: another process migrates it and loads the catalog.",
)
def serve(host: str | None, port: int | None, workers: int | None, no_migrate: bool) -> None:
    """Start the service. The database is migrated and the catalog files are loaded first."""
    settings = environment()
    if not no_migrate:
        prepare(settings)
    # No access log: it would print queries, and a query may hold a key.
    uvicorn.run(
        _APP,
        factory=True,
        host=host or settings.host,
        port=settings.port if port is None else port,
        workers=workers or settings.workers,
        log_level=settings.log_level,
        access_log=False,
        server_header=False,
    )


def prepare(settings: Settings) -> None:
    """Bring the database to the newest schema, and the catalog files into it, unless they were the last to be read."""
    engine = make_engine(settings.database_url.get_secret_value(), timeout_s=settings.database_timeout_s)
    try:
        upgrade(engine)
        repository = CatalogRepository(engine)
        root = catalog_root(settings.catalog_dir)
        fingerprint = files_fingerprint(root)
        if repository.files_fingerprint() != fingerprint:
            publish_files(
                repository,
                read_catalog(root),
                author="command line",
                note="costsvc serve",
                fingerprint=fingerprint,
            )
    finally:
        engine.dispose()
