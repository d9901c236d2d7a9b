"""The composition root: the only file that knows every part of the service."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, date, datetime
from functools import partial
from pkgutil import resolve_name

from litestar import Litestar, Router
from litestar.concurrency import sync_to_thread
from litestar.datastructures import State
from litestar.di import Provide
from litestar.handlers import HTTPRouteHandler
from litestar.middleware import DefineMiddleware

from costsvc.api import (
    api_prices,
    batch,
    budget,
    comparisons,
    docs,
    fx_rates,
    gpus,
    health,
    imports,
    logs,
    metrics,
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
from costsvc.api.answers import Answers
from costsvc.api.bodies import MAX_BODY_BYTES
from costsvc.api.door import OPEN
from costsvc.api.door.buckets import Policy, ProcessBuckets, SharedBuckets
from costsvc.api.door.door import Door, House
from costsvc.api.door.heavy_work import HeavyWork
from costsvc.api.headers import completed
from costsvc.api.problems import HANDLERS, KINDS
from costsvc.api.recall import Recall
from costsvc.api.service import Service
from costsvc.api.watch.metrics import Metrics
from costsvc.api.watch.tracing import Tracing, to_collector
from costsvc.api.watch.watch import Observer, Watch
from costsvc.db.engine import make_engine
from costsvc.db.keyring import KeyRing
from costsvc.db.keys import KeyRepository
from costsvc.db.private_book import PrivateBook
from costsvc.db.private_prices import PrivateRepository
from costsvc.db.quotes import QuoteRepository
from costsvc.db.repository import CatalogRepository
from costsvc.db.snapshot_store import SnapshotStore
from costsvc.engine.ready import make_ready
from costsvc.engine.units import MIB
from costsvc.ingest.root import catalog_root
from costsvc.quoting.validation_file import read_points, read_validation
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
    fx_rates.get_fx_rates,
    fx_rates.get_fx_rate,
    validation.get_validation,
    validation.get_points,
    health.get_health,
    health.get_readiness,
    metrics.get_metrics,
)
# Pages for people hold no quote, so they are there without a key.
PAGES = Router(
    "/",
    route_handlers=(
        pages.get_explorer,
        pages.get_launch,
        pages.get_catalog,
        pages.get_accuracy,
        pages.get_asset,
        docs.get_problems,
        docs.get_problem,
    ),
    opt=OPEN,
)
# How often each process brings up to date what /metrics shows of it, also when another process answers.
_SHOWN_EVERY_S = 1.0


def utc_today() -> date:
    """The day whose prices hold where a request names none: here alone the service reads a calendar."""
    return datetime.now(UTC).date()


def create_app(
    settings: Settings | None = None,
    today: Callable[[], date] = utc_today,
    more: Sequence[HTTPRouteHandler] = (),
) -> Litestar:
    """The service, as the environment or `settings` say. `more` are handlers beside its own, behind the same door."""
    settings = settings or Settings()
    logs.configure(settings.log_level, settings.log_format)
    engine = make_engine(
        settings.database_url.get_secret_value(),
        pool_size=settings.database_pool,
        timeout_s=settings.database_timeout_s,
    )
    repository = CatalogRepository(engine)
    private = PrivateRepository(engine)
    keys = KeyRing(KeyRepository(engine))
    policy = Policy(settings.rate_burst, settings.rate_per_s) if settings.rate_per_s else None
    shared = _shared(settings, policy)
    root = catalog_root(settings.catalog_dir)
    service = Service(
        SnapshotStore(repository, private=PrivateBook(private), poll_s=settings.poll_s),
        repository,
        QuoteRepository(engine),
        private,
        today,
        read_validation(root),
        partial(read_points, root),
        HeavyWork(running=settings.heavy_running, waiting=settings.heavy_waiting),
        Metrics(problems=KINDS, shares_limits=shared is not None),
        shared,
    )
    house = House(
        keys=keys,
        is_key_required=settings.keys == "required",
        policy=policy,
        buckets=shared or _alone(policy),
        heavy=service.heavy,
        metrics=service.metrics,
        most_requests=settings.most_requests,
        body_grace_s=settings.client_timeout_s,
    )
    tracing = to_collector() if settings.tracing else None
    answers = Answers(service.metrics.looked_up, settings.answers_mib * MIB)
    app = Litestar(
        route_handlers=(*ROUTES, PAGES, *more),
        dependencies={"service": Provide(lambda: service, sync_to_thread=False)},
        state=State({"answers": answers}),
        middleware=[
            DefineMiddleware(Door, house=house),
            DefineMiddleware(Recall, service=service, answers=answers),
        ],
        exception_handlers=HANDLERS,
        before_send=[completed(_writes())],
        request_max_body_size=MAX_BODY_BYTES,
        openapi_config=docs.openapi_config(),
        logging_config=None,
        lifespan=[_running(service, keys, tracing)],
        on_shutdown=[engine.dispose],
    )
    app.asgi_handler = Watch(app.asgi_handler, _observers(settings, service, tracing))
    return app


def _writes() -> frozenset[str]:
    """Templates of the paths whose POST needs a key: only writes do."""
    posts = [route for route in ROUTES if "POST" in route.http_methods and route.dependencies]
    # A template of a request names its parameters without their types.
    return frozenset(re.sub(r":\w+}", "}", path) for route in posts for path in route.paths)


def _alone(policy: Policy | None) -> ProcessBuckets:
    return ProcessBuckets(policy or Policy(burst=1, per_s=1))


def _shared(settings: Settings, policy: Policy | None) -> SharedBuckets | None:
    if settings.redis_url is None or policy is None:
        return None
    # Imported by name, because a service without Redis need not load its client.
    redis_buckets = resolve_name("costsvc.api.door.redis_buckets:RedisBuckets")
    shared: SharedBuckets = redis_buckets.at(
        settings.redis_url.get_secret_value(), policy, ProcessBuckets(policy)
    )
    return shared


def _observers(settings: Settings, service: Service, tracing: Tracing | None) -> list[Observer]:
    access = [logs.log_access] if settings.access_log else []
    spans = [tracing.observe] if tracing else []
    return [service.metrics.observe, *access, *spans]


def _running(
    service: Service, keys: KeyRing, tracing: Tracing | None
) -> Callable[[Litestar], AbstractAsyncContextManager[None]]:
    """Keep catalog, keys and figures fresh while the service runs."""

    async def show_state() -> None:
        while True:
            service.show_state()
            await asyncio.sleep(_SHOWN_EVERY_S)

    @asynccontextmanager
    async def lifespan(_: Litestar) -> AsyncIterator[None]:
        await sync_to_thread(make_ready)
        await sync_to_thread(service.snapshots.start)
        keys.start()
        if service.shared is not None:
            await service.shared.start()
        showing = asyncio.create_task(show_state())
        try:
            yield
        finally:
            showing.cancel()
            if service.shared is not None:
                await service.shared.stop()
            await sync_to_thread(keys.stop)
            await sync_to_thread(service.snapshots.stop)
            if tracing is not None:
                await sync_to_thread(tracing.stop)

    return lifespan
