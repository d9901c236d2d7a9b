"""A catalog of a million prices: whether a quote, a list of prices and a refresh notice.

`python -m bench.prices [PRICES [DATABASE_URL]]`: in one process, medians. It prints one `name value` line per figure of
the large catalog, in milliseconds and as a ratio to the shipped one, which is asked in turn with it. The large one is
in a SQLite file, or in an empty database of yours.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from functools import partial
from typing import Final

from litestar import Litestar
from litestar.testing import TestClient
from sqlalchemy import Engine, func, insert, select

from costsvc.app import create_app
from costsvc.cli.serve import prepare
from costsvc.db.engine import make_engine
from costsvc.db.repository import CatalogRepository
from costsvc.db.snapshot_store import SnapshotStore
from costsvc.db.tables import OfferPriceRow, OfferRow, RevisionRow, SourceRow
from costsvc.settings import Settings

PRICES: Final = 1_000_000
PRICES_OF_AN_OFFER: Final = 100
CALLS: Final = 30
_CHUNK: Final = 5000
_TODAY: Final = date(2026, 11, 29)
_SHORTEST: Final = 4096
# Each page is asked for once: what was asked before is answered from memory.
_PAGE: Final = 200
_GPUS: Final = ("h100-sxm", "a100-sxm-80gb", "h200-sxm", "l4", "b200-sxm", "mi300x", "l40s", "rtx-4090")
_SELLERS: Final = ("AWS", "GCP", "Azure", "OCI", "Lambda")
_PATHS: Final[dict[str, Callable[[int], str]]] = {
    "quote_ms": lambda n: f"/quote?model=llama-3-70b&gpu=h100&ctx={_SHORTEST + n}",
    "quote_of_a_past_day_ms": lambda n: (
        f"/quote?model=llama-3-70b&gpu=h100&ctx={_SHORTEST + n}&as_of={_TODAY - timedelta(days=n)}"
    ),
    "prices_ms": lambda n: f"/prices?gpu=h100&market=on-demand&limit={_PAGE + n}",
    "prices_page_ms": lambda n: f"/prices?limit={_PAGE + n}",
    "prices_sorted_ms": lambda n: f"/prices?gpu=h100&sort=usd_per_gpu_hour&limit={_PAGE + n}",
}


def main(prices: int, database_url: str | None) -> None:
    """Ask a service over the shipped catalog and one over the large catalog in turn."""
    with tempfile.TemporaryDirectory() as folder:
        small, large = (
            Settings.model_validate({"database_url": url, "poll_s": 3600, "log_level": "warning"})
            for url in (f"sqlite:///{folder}/small.db", database_url or f"sqlite:///{folder}/large.db")
        )
        engines = [_prepared(settings) for settings in (small, large)]
        _fill(engines[1], prices)
        with (
            TestClient(create_app(small, today=lambda: _TODAY)) as first,
            TestClient(create_app(large, today=lambda: _TODAY)) as second,
        ):
            for name, path in _PATHS.items():
                _print(name, *_in_turn(partial(_get, first, path), partial(_get, second, path)))
        stores = [SnapshotStore(CatalogRepository(engine), poll_s=3600) for engine in engines]
        loads = [_ms(store.refresh) for store in stores]
        _print("whole_load_ms", *loads)
        _print(
            "refresh_ms",
            *_in_turn(*(partial(_refresh_ms, *pair) for pair in zip(stores, engines, strict=True))),
        )
        for engine in engines:
            engine.dispose()


def _prepared(settings: Settings) -> Engine:
    prepare(settings)
    return make_engine(settings.database_url.get_secret_value())


def _print(name: str, small_ms: float, large_ms: float) -> None:
    print(f"{name} {large_ms:.2f}\n{name}_vs_shipped {large_ms / small_ms:.2f}", flush=True)


def _in_turn(*calls: Callable[[int], float]) -> list[float]:
    """Median of each, one call of each after the other, so that whatever else the machine does is in all. [ms]"""
    times_ms: list[list[float]] = [[] for _ in calls]
    for number in range(CALLS):
        for times, call in zip(times_ms, calls, strict=True):
            times.append(call(number))
    return [statistics.median(times) for times in times_ms]


def _get(client: TestClient[Litestar], path: Callable[[int], str], number: int) -> float:
    return _ms(lambda: client.get(path(number)).raise_for_status())


def _refresh_ms(store: SnapshotStore, engine: Engine, number: int) -> float:
    """After one price was added."""
    _add_price(engine, number)
    return _ms(store.refresh)


def _ms(call: Callable[[], object]) -> float:
    started_s = time.perf_counter()
    call()
    return (time.perf_counter() - started_s) * 1e3


def _fill(engine: Engine, prices: int) -> None:
    """Offers with a hundred prices each, as daily observation of many regions would leave them."""
    with engine.begin() as connection:
        revision = connection.scalar(select(func.max(RevisionRow.id)))
        source = connection.scalar(select(func.min(SourceRow.id)))
        for first in range(0, prices // PRICES_OF_AN_OFFER, _CHUNK // PRICES_OF_AN_OFFER):
            offers = [
                {
                    "id": f"bench/{n:07}",
                    "provider": _SELLERS[n % len(_SELLERS)],
                    "gpu_id": _GPUS[n % len(_GPUS)],
                    "market": "on-demand",
                    "region": f"bench-{n // len(_GPUS) % 200}",
                    "basis": "per-gpu",
                    "added_revision": revision,
                }
                for n in range(first, first + _CHUNK // PRICES_OF_AN_OFFER)
            ]
            dated = [
                {
                    "offer_id": offer["id"],
                    "first_day": _TODAY - timedelta(days=3 * day),
                    "usd_per_gpu_hour": Decimal(200 + day) / 100,
                    "source_id": source,
                    "added_revision": revision,
                }
                for offer in offers
                for day in range(PRICES_OF_AN_OFFER)
            ]
            connection.execute(insert(OfferRow), offers)
            connection.execute(insert(OfferPriceRow), dated)


def _add_price(engine: Engine, number: int) -> None:
    """A revision of one more price, as a post leaves it."""
    with engine.begin() as connection:
        newest = (
            connection.execute(select(RevisionRow).order_by(RevisionRow.id.desc()).limit(1)).mappings().one()
        )
        row = dict(newest) | {"id": newest["id"] + 1, "content_hash": f"{newest['content_hash']}+"}
        offer, source = connection.execute(
            select(OfferPriceRow.offer_id, OfferPriceRow.source_id).order_by(OfferPriceRow.offer_id).limit(1)
        ).one()
        day = date(2030, 1, 1) + timedelta(days=newest["id"] * 10 + number)
        connection.execute(insert(RevisionRow).values(**row))
        connection.execute(
            insert(OfferPriceRow).values(
                offer_id=offer,
                first_day=day,
                usd_per_gpu_hour=Decimal(2),
                source_id=source,
                added_revision=row["id"],
            )
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else PRICES, sys.argv[2] if sys.argv[2:] else None)
