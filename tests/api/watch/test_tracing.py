"""Spans name what was asked by its template, belong to the caller's trace, and hold no query."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from litestar.testing import TestClient
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from costsvc import app
from costsvc.api.watch.tracing import Tracing
from tests.api.conftest import TODAY, Client, settings_for

QUOTE = "/quote?model=llama-3-70b&gpu=h100&ctx=8192"
CALLER = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}


@pytest.fixture
def spans() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def traced(small: Path, spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    monkeypatch.setattr(app, "to_collector", lambda: Tracing(provider))
    settings = settings_for(small).model_copy(update={"tracing": True})
    with TestClient(app.create_app(settings, today=lambda: TODAY), raise_server_exceptions=False) as client:
        yield client


def attributes(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


def test_a_span_names_route_status_and_request_and_joins_the_callers_trace(
    traced: Client, spans: InMemorySpanExporter
) -> None:
    answer = traced.get(QUOTE, headers=CALLER)
    (span,) = spans.get_finished_spans()
    assert (span.name, span.kind) == ("GET /quote", SpanKind.SERVER)
    assert attributes(span) == {
        "http.request.method": "GET",
        "http.route": "/quote",
        "http.response.status_code": 200,
        "costsvc.request_id": answer.headers["X-Request-Id"],
    }
    assert span.parent is not None
    assert f"{span.parent.trace_id:032x}" == CALLER["traceparent"].split("-")[1]
    assert span.end_time is not None
    assert span.start_time is not None
    assert span.end_time > span.start_time


def test_a_fault_is_marked_and_a_key_is_in_no_span(
    traced: Client, spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("costsvc.api.quote.make_quote", lambda *_: 1 / 0)
    traced.get(QUOTE)
    traced.get(f"{QUOTE}&api_key=hidden")
    failed, refused = spans.get_finished_spans()
    assert failed.status.status_code is StatusCode.ERROR
    assert refused.status.status_code is StatusCode.UNSET
    assert "hidden" not in refused.to_json()
