"""Processes that write to one SQLite file until they are killed, and say of each write that it is done."""

import itertools
import os
import time
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from multiprocessing.connection import Connection

from costsvc.db.engine import make_engine
from costsvc.db.quotes import QuoteRepository, StoredQuote
from costsvc.db.repository import CatalogRepository
from tests.db.examples import CONTENT

CONTENT_BYTES = 100_000
# SQLite lets whoever asks first write next; one that never pauses would keep the other waiting for ever.
_PAUSE_S = 0.02


def store_quotes(url: str, said: Connection) -> None:
    """Store quotes, and say the id of each that was acknowledged."""
    quotes = QuoteRepository(make_engine(url))
    for number in itertools.count():
        id = f"{os.getpid()}-{number}"
        quote = StoredQuote(
            id=id,
            owner="owner finance",
            idempotency_key=id,
            request_hash=id,
            created_at=datetime.now(UTC),
            label=id,
            model_id="llama-3-70b",
            gpu_id="h100-sxm",
            as_of=date(2026, 11, 29),
            catalog_revision=1,
            engine_version="0.1.0",
            request_usd="0.005",
        )
        quotes.store(quote, lambda stored: {"json": content_of(stored.id), "csv": content_of(stored.id)})
        said.send(id)
        time.sleep(_PAUSE_S)


def store_catalogs(url: str, said: Connection) -> None:
    """Store a catalog that differs from the one before, and say the number of each revision."""
    catalogs = CatalogRepository(make_engine(url))
    for number in itertools.count(1):
        usd = Decimal(os.getpid() * 10_000 + number) / 10**6
        offers = tuple(
            replace(one, prices=tuple(replace(price, usd_per_gpu_hour=usd) for price in one.prices))
            for one in CONTENT.offers
        )
        said.send(catalogs.store(replace(CONTENT, offers=offers), author="tests", note=str(usd)).revision)
        time.sleep(_PAUSE_S)


def content_of(id: str) -> bytes:
    """Bytes of a quote, of which every one can be checked."""
    return (id.encode() * (CONTENT_BYTES // len(id) + 1))[:CONTENT_BYTES]
