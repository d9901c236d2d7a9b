"""nginx alone, before stand-ins of the replicas: whom it asks where several were away a moment ago."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest

from tests.faults.processes import Nginx, free_port, once, program

ASKED = 40


class StandIn(BaseHTTPRequestHandler):
    """Answers everything, and closes the connection."""

    def do_GET(self) -> None:
        """200 without a body."""
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def listening(port: int) -> Iterator[None]:
    with ThreadingHTTPServer(("127.0.0.1", port), StandIn) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        try:
            yield
        finally:
            server.shutdown()


def test_replicas_that_were_all_away_a_moment_ago_are_asked_all_the_same(tmp_path: Path) -> None:
    if program("nginx") is None:
        pytest.skip("nginx is not on this machine (apt install nginx-light)")
    ports = [free_port() for _ in range(3)]
    nginx = Nginx(tmp_path, ports)

    def answered() -> list[int]:
        return [httpx.get(f"{nginx.address}/healthz").status_code for _ in range(ASKED)]

    with nginx:
        with listening(ports[2]):
            once(nginx.is_answering, "nginx answers")
            assert answered() == [200] * ASKED
        with ExitStack() as back:
            for port in ports[:2]:
                back.enter_context(listening(port))
            assert answered() == [200] * ASKED
