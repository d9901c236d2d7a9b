"""Services to measure: started in processes of their own, over a new database, with all that production has on."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

from bench.noop import PATH as NOOP
from costsvc.db.engine import make_engine
from costsvc.db.keys import KeyRepository

PATIENCE_S: Final = 90
# A key that may ask more than any bench does: it is counted, and never refused.
_LIMITS: Final = {"COSTSVC_RATE_BURST": "10000000", "COSTSVC_RATE_PER_S": "1000000"}


@dataclass(frozen=True, slots=True)
class Served:
    """An address, and the headers that callers send. Where nothing but the no-op answers, there is no key."""

    address: str
    headers: dict[str, str]


@contextmanager
def served(*, workers: int = 1, bare: bool = False) -> Iterator[Served]:
    """The service with the route that only answers, once it is ready; `bare`: that route alone."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        database = f"sqlite:///{Path(folder) / 'bench.db'}"
        given = {
            **_LIMITS,
            "COSTSVC_DATABASE_URL": database,
            "COSTSVC_LOG_LEVEL": "warning",
            "COSTSVC_PORT": str(port),
            "COSTSVC_WORKERS": str(workers),
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.noop", *(["bare"] if bare else [])], env={**os.environ, **given}
        )
        try:
            address = f"http://127.0.0.1:{port}"
            _wait_for(address + NOOP)
            yield Served(
                address, {} if bare else {"X-API-Key": _key(database), "Origin": "https://example.com"}
            )
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def _key(database: str) -> str:
    engine = make_engine(database)
    key, _ = KeyRepository(engine).create(scope="read", label="bench", owner="", author="bench")
    engine.dispose()
    return key


def _wait_for(url: str) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < until_s:
        try:
            if httpx.get(url).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise SystemExit(f"The service was not ready within {PATIENCE_S} s.")
