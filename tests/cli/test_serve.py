"""The running server: slow clients are cut off, workers count together, and what is in flight is finished."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from costsvc.cli.patience import MOST_HEADER_BYTES
from costsvc.db.engine import make_engine
from costsvc.db.migrate import upgrade
from costsvc.db.repository import CatalogRepository
from tests.db.examples import CONTENT

PATIENCE_S = 90
ROWS = 3_000


class Served:
    """`costsvc serve` in a folder of its own, over a small catalog."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.log = folder / "log"
        engine = make_engine(f"sqlite:///{folder / 'costsvc.db'}")
        upgrade(engine)
        CatalogRepository(engine).store(CONTENT, author="tests", note="")
        engine.dispose()
        bare = {name: text for name, text in os.environ.items() if not name.startswith("COSTSVC_")}
        given = {f"COSTSVC_{name.upper()}": value for name, value in settings.items()}
        with self.log.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", "from costsvc.cli import main; main()", "serve", "--no-migrate"],
                cwd=folder,
                env={**bare, **given, "COSTSVC_PORT": "0"},
                stdout=output,
                stderr=output,
            )
        self.address = self._once_ready()

    def _once_ready(self) -> str:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.log.read_text()
            if found := re.search(r"running on (http://[\d.:]+)", self.log.read_text()):
                try:
                    if httpx.get(f"{found[1]}/readyz", timeout=PATIENCE_S).is_success:
                        return found[1]
                except httpx.TransportError:
                    pass
            time.sleep(0.05)
        raise AssertionError(self.log.read_text())

    def connected(self) -> socket.socket:
        """A connection, for what no client library would send."""
        url = urlsplit(self.address)
        connection = socket.create_connection((url.hostname, url.port), timeout=PATIENCE_S)
        connection.settimeout(PATIENCE_S)
        return connection

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(PATIENCE_S)


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with two workers that waits half a second for its clients, and believes a proxy on this machine."""
    served = Served(
        tmp_path_factory.mktemp("impatient"),
        workers="2",
        client_timeout_s="0.5",
        trusted_proxies="127.0.0.1",
        rate_burst="100",
        rate_per_s="0.01",
        access_log="true",
        log_format="json",
    )
    yield served
    served.stop()


def rest_of(connection: socket.socket) -> bytes:
    """What comes until the other side ends the connection."""
    received = b""
    try:
        while piece := connection.recv(65_536):
            received += piece
    except ConnectionResetError:
        pass
    return received


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTT", b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: "])
def test_headers_that_do_not_come_end_the_connection(impatient: Served, sent: bytes) -> None:
    with impatient.connected() as connection:
        connection.sendall(sent)
        assert rest_of(connection) == b""


def test_headers_without_end_are_refused_with_the_number(impatient: Served) -> None:
    with impatient.connected() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nX-A: " + b"a" * (MOST_HEADER_BYTES + 1))
        answer = rest_of(connection)
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert b"longer than 65536 bytes" in answer


def test_a_body_that_does_not_come_is_a_problem_and_the_end_of_the_connection(impatient: Served) -> None:
    with impatient.connected() as connection:
        head = b"POST /quote HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        connection.sendall(head)
        answer = rest_of(connection)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"/problems/slow-client" in answer


def test_a_client_that_reads_nothing_is_cut_off(impatient: Served) -> None:
    with impatient.connected() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        # Some megabytes of answers, none of them read.
        asked = b"GET /assets/vendor/plot.umd.min.js HTTP/1.1\r\nHost: x\r\n\r\n"
        ended = False
        deadline = time.monotonic() + PATIENCE_S
        while not ended and time.monotonic() < deadline:
            try:
                connection.sendall(asked * 50)
                time.sleep(0.1)
            except (ConnectionError, TimeoutError):
                ended = True
        assert ended


def test_workers_count_together_and_each_callers_address_is_its_own(impatient: Served) -> None:
    with httpx.Client(
        base_url=impatient.address, headers={"Connection": "close"}, timeout=PATIENCE_S
    ) as client:
        for number in range(20):
            said = {"X-Forwarded-For": f"198.51.100.{number}"}
            answer = client.get("/gpus", headers=said)
            # Each of the two processes has a bucket of its own, for there is no Redis.
            assert int(answer.headers["RateLimit"].partition("r=")[2]) == 99
        figures = client.get("/metrics").text
    counted = re.search(r'duration_seconds_count\{method="GET",route="/gpus",status="200"\} (\S+)', figures)
    assert counted is not None
    assert float(counted[1]) == 20
    assert '"address": "198.51.100.7"' in impatient.log.read_text()


def test_what_is_in_flight_is_finished_before_the_service_stops(impatient: Served) -> None:
    """The last of this file: it stops the server."""
    rows = "model,gpu,ctx\n" + "".join(f"nobody{number},nothing,8\n" for number in range(ROWS))
    batch = httpx.stream(
        "POST",
        f"{impatient.address}/quotes/batch",
        content=rows,
        headers={"Content-Type": "text/csv", "X-Forwarded-For": "203.0.113.1"},
        timeout=PATIENCE_S,
    )
    with batch as answer:
        lines = answer.iter_lines()
        next(lines)
        impatient.process.send_signal(signal.SIGTERM)
        assert sum(1 for _ in lines) == ROWS
    assert impatient.process.wait(PATIENCE_S) == 0
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{impatient.address}/healthz")
