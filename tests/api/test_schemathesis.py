"""Whatever the OpenAPI document allows, a real server answers as the document says.

`make fuzz` tries many more of each, and new ones each time (`COSTSVC_TEST_EXAMPLES`).
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import schemathesis
import uvicorn
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from costsvc.app import create_app
from tests.api.conftest import TODAY, settings_for

# Workbooks and lines of JSON are sent by tests of their own: the generator makes JSON and CSV alone.
pytestmark = pytest.mark.filterwarnings("ignore:Skipped test cases with unsupported payload media types")

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
PATIENCE_S = 30
SAMPLE = 8
EXAMPLES = int(os.environ.get("COSTSVC_TEST_EXAMPLES", SAMPLE))


@pytest.fixture(scope="session")
def address(small: Path) -> Iterator[str]:
    """Where a real server listens."""
    app = create_app(settings_for(small), today=lambda: TODAY)
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


# The document depends on no database, and tests are named after its operations before one is there.
documented = schemathesis.openapi.from_dict(
    create_app(settings_for(Path("unused.db"))).openapi_schema.to_schema()
)
bounded = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=EXAMPLES == SAMPLE,
    suppress_health_check=list(HealthCheck),
)


@documented.exclude(method="HEAD").parametrize()
@bounded
def test_every_answer_is_one_that_is_documented(case: Case[Any], address: str) -> None:
    case.call_and_validate(base_url=address, checks=CHECKS)


@documented.include(path="/quote", method="GET").parametrize()
@bounded
def test_every_quote_of_what_there_is_answers_as_documented(case: Case[Any], address: str) -> None:
    case.query |= {"model": "llama-3-70b", "gpu": "h100"}
    case.call_and_validate(base_url=address, checks=CHECKS)
