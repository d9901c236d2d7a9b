"""A span per request for an OpenTelemetry collector. Its packages are an extra and are loaded only when asked for."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from litestar.types import Scope

from costsvc import __version__
from costsvc.api.request_id import request_id_of
from costsvc.api.watch.metrics import NO_ROUTE
from costsvc.errors import InvalidRequest

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider


class Tracing:
    """Tells each answered request as a span, in the caller's trace where it names one.

    A span names the template of the route, never the query: a query may hold a key.
    """

    def __init__(self, provider: "TracerProvider", now_ns: Callable[[], int] = time.time_ns) -> None:
        from opentelemetry.propagate import extract  # noqa: PLC0415
        from opentelemetry.trace import SpanKind, StatusCode  # noqa: PLC0415

        self._provider = provider
        self._tracer = provider.get_tracer("costsvc", __version__)
        self._extract, self._server, self._failed = extract, SpanKind.SERVER, StatusCode.ERROR
        self._now_ns = now_ns

    def observe(self, scope: Scope, status: int, taken_s: float) -> None:
        """Record an answered request."""
        ended_ns = self._now_ns()
        method, route = str(scope.get("method", "")), scope.get("path_template") or NO_ROUTE
        caller = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in scope["headers"]
            if name in (b"traceparent", b"tracestate")
        }
        span = self._tracer.start_span(
            f"{method} {route}",
            context=self._extract(caller),
            kind=self._server,
            start_time=ended_ns - int(taken_s * 1e9),
            attributes={
                "http.request.method": method,
                "http.route": route,
                "http.response.status_code": status,
                "costsvc.request_id": request_id_of(scope),
            },
        )
        if status >= 500:
            span.set_status(self._failed)
        span.end(ended_ns)

    def stop(self) -> None:
        """Send what was not sent yet."""
        self._provider.shutdown()


def to_collector() -> Tracing:
    """Spans to the collector that the standard variables OTEL_EXPORTER_OTLP_… name.

    Raises
    ------
    InvalidRequest
        The extra is not installed.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ImportError:
        raise InvalidRequest(
            "COSTSVC_TRACING is set, but OpenTelemetry is not installed: pip install 'costsvc[tracing]'.",
            field="tracing",
        ) from None
    provider = TracerProvider(resource=Resource.create({SERVICE_NAME: "costsvc"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Tracing(provider)
