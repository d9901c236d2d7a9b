"""Figures: every answer is counted once, by labels of few values, whatever callers send."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from litestar.testing import TestClient
from prometheus_client.parser import text_string_to_metric_families

from costsvc.api.watch.metrics import Metrics
from costsvc.app import create_app
from tests.api.conftest import TODAY, Client, settings_for

QUOTE = "/quote?model=llama-3-70b&gpu=h100&ctx=8192"
Figures = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def fresh(small: Path) -> Iterator[Client]:
    """A service that has answered nothing yet."""
    app = create_app(settings_for(small), today=lambda: TODAY)
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


def figures(client: Client) -> Figures:
    text = client.get("/metrics").text
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def figure(found: Figures, name: str, **labels: str) -> float | None:
    return found.get((name, frozenset(labels.items())))


def test_each_answer_is_counted_by_route_and_status(fresh: Client) -> None:
    for url in (QUOTE, QUOTE, "/quote?model=x", "/gpus/h100-sxm", "/gpus/h100", "/nowhere", "/elsewhere"):
        fresh.get(url)
    fresh.request("BREW", "/quote")
    found = figures(fresh)
    counted = {
        (labels["method"], labels["route"], labels["status"]): value
        for name, pairs in found
        if name == "costsvc_request_duration_seconds_count"
        for labels, value in [(dict(pairs), found[name, pairs])]
    }
    assert counted == {
        ("GET", "/quote", "200"): 2,
        ("GET", "/quote", "400"): 1,
        ("GET", "/gpus/{id}", "200"): 2,
        ("GET", "unmatched", "404"): 2,
        ("other", "unmatched", "405"): 1,
    }


def test_quotes_are_counted_by_the_models_own_id_and_bound(fresh: Client) -> None:
    bound = fresh.get(QUOTE).json()["concurrency"]["bound"]
    fresh.get(QUOTE.replace("llama-3-70b", "Llama-3-70B"))
    assert figure(figures(fresh), "costsvc_quotes_total", model="llama-3-70b", bound=bound) == 2


def test_errors_are_counted_by_kind(fresh: Client) -> None:
    fresh.get("/quote?model=x&gpu=h100&ctx=8192")
    fresh.get("/nowhere")
    found = figures(fresh)
    assert figure(found, "costsvc_problems_total", kind="not-in-catalog") == 1
    assert figure(found, "costsvc_problems_total", kind="no-such-page") == 1


def test_the_state_of_the_service_is_shown(fresh: Client) -> None:
    found = figures(fresh)
    assert figure(found, "costsvc_catalog_revision") == 1
    assert figure(found, "costsvc_snapshot_age_seconds") == 0
    assert figure(found, "costsvc_heavy_work_waiting") == 0
    assert figure(found, "costsvc_shared_limits_reachable") is None
    assert (figure(found, "process_resident_memory_bytes") or 0) > 1e6


def test_answers_from_memory_and_a_missing_redis_are_shown() -> None:
    metrics = Metrics(problems=["overloaded"], shares_limits=True)
    metrics.looked_up(is_held=True)
    metrics.looked_up(is_held=False)
    text = metrics.exposed().decode()
    assert 'costsvc_answer_cache_total{outcome="hit"} 1.0' in text
    assert "costsvc_shared_limits_reachable 0.0" in text
    assert 'costsvc_problems_total{kind="overloaded"} 0.0' in text


def test_the_format_is_that_of_prometheus_and_nobody_keeps_it(fresh: Client) -> None:
    response = fresh.get("/metrics")
    assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert response.headers["Cache-Control"] == "no-store"
    assert fresh.get("/metrics?x=1").status_code == 400
