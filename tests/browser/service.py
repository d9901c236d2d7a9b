"""A service of its own over the shipped catalog, for browsers to visit."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Final

import uvicorn

from costsvc.app import create_app
from costsvc.cli.serve import prepare
from tests.api.conftest import TODAY, settings_for

PATIENCE_S: Final = 60
AT_REST: Final = "() => document.body.getAttribute('aria-busy') === 'false'"


@contextmanager
def serving(database: Path, **changes: object) -> Iterator[str]:
    """The address of a service whose day is `TODAY`, with other settings where they are given."""
    settings = settings_for(database).model_copy(update=changes)
    prepare(settings)
    app = create_app(settings, today=lambda: TODAY)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, access_log=False))
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + PATIENCE_S
    while not server.started and time.monotonic() < deadline:
        time.sleep(0.02)
    host, port = server.servers[0].sockets[0].getsockname()[:2]
    yield f"http://{host}:{port}"
    server.should_exit = True
    thread.join(PATIENCE_S)
