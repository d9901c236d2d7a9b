"""Every route that takes a body refuses one that is too long, says how long it may be, and reads no further."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from costsvc.api.bodies import MAX_BATCH_BYTES, MAX_BODY_BYTES
from costsvc.api.traces import MOST_TRACE_BYTES
from costsvc.app import ROUTES
from tests.api.conftest import Client

LIMITS = {"/quotes/batch": MAX_BATCH_BYTES, "/traces": MOST_TRACE_BYTES}
POSTS = sorted(
    path.replace("{id:path}", "some/offer")
    for route in ROUTES
    if "POST" in route.http_methods
    for path in route.paths
)


@pytest.fixture
def headers(loaded: Path, make_key: Any) -> dict[str, str]:
    return {"X-API-Key": make_key(loaded, "admin")}


def test_every_route_that_takes_a_body_is_tried() -> None:
    assert {*LIMITS, "/quote", "/quotes", "/budget.xlsx", "/models/import", "/prices/some/offer"} <= {*POSTS}


@pytest.mark.parametrize("path", POSTS)
def test_a_body_that_says_to_be_too_long_is_refused(
    client: Client, headers: dict[str, str], path: str
) -> None:
    most = LIMITS.get(path, MAX_BODY_BYTES)
    said = {**headers, "Content-Type": "application/json", "Content-Length": str(most + 1)}
    response = client.post(path, content=b"{}", headers=said)
    assert response.status_code == 413, response.text
    assert f"{most}" in response.json()["detail"].replace(",", "")


@pytest.mark.parametrize("path", [path for path in POSTS if path != "/traces"])
def test_a_body_without_a_length_is_read_up_to_its_limit(
    client: Client, headers: dict[str, str], path: str
) -> None:
    most = LIMITS.get(path, MAX_BODY_BYTES)
    sent = 0

    def body() -> Iterator[bytes]:
        nonlocal sent
        while sent <= most:
            sent += 100_000
            yield b" " * 100_000

    response = client.post(path, content=body(), headers={**headers, "Content-Type": "application/json"})
    assert response.status_code == 413, response.text
    assert f"{most}" in response.json()["detail"]
