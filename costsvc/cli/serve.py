"""Starting the service: the database is prepared once, by the parent, before any worker answers."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pkgutil import resolve_name
from tempfile import TemporaryDirectory
from typing import Any, Final

import click
import uvicorn

from costsvc.cli.environment import environment
from costsvc.cli.lazy import kept
from costsvc.cli.patience import PatientProtocol
from costsvc.db.engine import make_engine
from costsvc.db.repository import CatalogRepository
from costsvc.db.schema import newest_schema, schema_of
from costsvc.ingest.fingerprint import files_fingerprint
from costsvc.ingest.root import catalog_root
from costsvc.settings import Settings

# By name: the service is made in the processes that answer, and the rest is needed where something has changed.
_SERVICE: Final = "costsvc.app:create_app"
_UPGRADE: Final = "costsvc.db.migrate:upgrade"
_READ: Final = "costsvc.ingest.files:read_catalog"
_PUBLISH: Final = "costsvc.quoting.publishing:publish_files"
# A process that starts on a busy machine is silent for a while, and is no reason to start another.
_LONGEST_SILENCE_S = 60
# Where the Prometheus client of each process finds the figures of the others.
_COUNTED_IN = "PROMETHEUS_MULTIPROC_DIR"


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
    given = {"host": host, "port": port, "workers": workers}
    settings = environment().model_copy(
        update={name: said for name, said in given.items() if said not in (None, "")}
    )
    if not no_migrate:
        prepare(settings)
    run(settings)


def service() -> Any:
    """The service, made in a process that answers."""
    with kept():
        return resolve_name(_SERVICE)()


def run(settings: Settings, app: str = f"{__name__}:{service.__name__}") -> None:
    """Answer requests until the process is told to stop. `app` names a function that makes the service."""
    with _counted_together() if settings.workers > 1 else nullcontext():
        # Uvicorn's own access log would print queries, and a query may hold a key.
        uvicorn.run(
            app,
            factory=True,
            host=settings.host,
            port=settings.port,
            workers=settings.workers,
            http=PatientProtocol,
            log_config=_log_config(settings),
            access_log=False,
            server_header=False,
            proxy_headers=bool(settings.trusted_proxies),
            forwarded_allow_ips=settings.trusted_proxies,
            timeout_worker_healthcheck=_LONGEST_SILENCE_S,
            timeout_graceful_shutdown=settings.shutdown_s,
        )


def _log_config(settings: Settings) -> dict[str, Any]:
    """Lines of the server and of the service in one form. It is named here, for only the service may import it."""
    lines = "costsvc.api.logs.JsonLines" if settings.log_format == "json" else "costsvc.api.logs.TextLines"
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lines": {"()": lines}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "lines"}},
        "root": {"handlers": ["stderr"], "level": settings.log_level.upper()},
    }


@contextmanager
def _counted_together() -> Iterator[None]:
    """A folder in which all processes count, so that /metrics is of all of them, whichever answers."""
    if _COUNTED_IN in os.environ:
        yield
        return
    with TemporaryDirectory(prefix="costsvc-metrics-") as folder:
        os.environ[_COUNTED_IN] = folder
        try:
            yield
        finally:
            del os.environ[_COUNTED_IN]


def prepare(settings: Settings) -> None:
    """Bring the database to the newest schema, and the catalog files into it, unless they were the last to be read."""
    engine = make_engine(settings.database_url.get_secret_value(), timeout_s=settings.database_timeout_s)
    try:
        if schema_of(engine) != newest_schema():
            resolve_name(_UPGRADE)(engine)
        repository = CatalogRepository(engine)
        root = catalog_root(settings.catalog_dir)
        fingerprint = files_fingerprint(root)
        if repository.files_fingerprint() != fingerprint:
            read, publish = resolve_name(_READ), resolve_name(_PUBLISH)
            publish(
                repository,
                read(root),
                author="command line",
                note="costsvc serve",
                fingerprint=fingerprint,
            )
    finally:
        engine.dispose()
