"""The composition root: the only file that knows every part of the service."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, date, datetime

from litestar import Litestar
from litestar.concurrency import sync_to_thread
from litestar.di import Provide

from costsvc.api import (
    api_prices,
    batch,
    budget,
    comparisons,
    docs,
    gpus,
    health,
    imports,
    logs,
    models,
    posting,
    prices,
    profiles,
    quote,
    quotes,
    template,
    traces,
    validation,
)
from costsvc.api.bodies import MAX_BODY_BYTES
from costsvc.api.headers import add_headers
from costsvc.api.problems import HANDLERS
from costsvc.api.service import Service
from costsvc.db.engine import make_engine
from costsvc.db.keys import KeyRepository
from costsvc.db.quotes import QuoteRepository
from costsvc.db.repository import CatalogRepository
from costsvc.db.snapshot_store import SnapshotStore
from costsvc.ingest.files import catalog_root
from costsvc.quoting.validation_file import read_validation
from costsvc.settings import Settings
from costsvc.web import pages

ROUTES = (
    quote.get_quote,
    quote.post_quote,
    quotes.post_quotes,
    batch.post_batch,
    budget.post_budget,
    template.get_template,
    quotes.get_quotes,
    quotes.get_stored_quote,
    quotes.get_difference,
    comparisons.get_comparison,
    comparisons.get_frontier,
    comparisons.get_curve,
    comparisons.get_what_if,
    comparisons.get_roofline,
    comparisons.get_launch_check,
    comparisons.post_launch_check,
    models.get_models,
    models.get_model,
    imports.post_import,
    gpus.get_gpus,
    gpus.get_gpu,
    prices.get_prices,
    prices.get_price,
    posting.post_offer,
    posting.post_prices,
    profiles.get_profiles,
    profiles.get_profile,
    profiles.post_profile,
    traces.post_trace,
    api_prices.get_api_prices,
    api_prices.get_api_price,
    validation.get_validation,
    health.get_health,
    health.get_readiness,
    pages.get_explorer,
    pages.get_launch,
    pages.get_catalog,
    pages.get_accuracy,
    pages.get_asset,
    docs.get_problems,
    docs.get_problem,
)


def utc_today() -> date:
    """The day whose prices hold where a request names none: here alone the service reads a calendar."""
    return datetime.now(UTC).date()


def create_app(settings: Settings | None = None, today: Callable[[], date] = utc_today) -> Litestar:
    """The service, as the environment or `settings` say."""
    settings = settings or Settings()
    logs.configure(settings.log_level, settings.log_format)
    engine = make_engine(
        settings.database_url.get_secret_value(),
        pool_size=settings.database_pool,
        timeout_s=settings.database_timeout_s,
    )
    repository = CatalogRepository(engine)
    snapshots = SnapshotStore(repository, poll_s=settings.poll_s)
    service = Service(
        snapshots,
        repository,
        KeyRepository(engine),
        QuoteRepository(engine),
        today,
        read_validation(catalog_root(settings.catalog_dir)),
    )
    return Litestar(
        route_handlers=ROUTES,
        dependencies={"service": Provide(lambda: service, sync_to_thread=False)},
        exception_handlers=HANDLERS,
        before_send=[add_headers],
        request_max_body_size=MAX_BODY_BYTES,
        openapi_config=docs.openapi_config(),
        logging_config=None,
        lifespan=[_following(snapshots)],
        on_shutdown=[engine.dispose],
    )


def _following(snapshots: SnapshotStore) -> Callable[[Litestar], AbstractAsyncContextManager[None]]:
    """Keep the catalog fresh while the service runs."""

    @asynccontextmanager
    async def lifespan(_: Litestar) -> AsyncIterator[None]:
        await sync_to_thread(snapshots.start)
        try:
            yield
        finally:
            await sync_to_thread(snapshots.stop)

    return lifespan
