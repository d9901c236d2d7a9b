"""Figures for Prometheus. Every label has few values: routes are templates, models are those of the catalog."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal

from litestar.types import Scope
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

CONTENT_TYPE: Final = "text/plain; version=0.0.4"
# Set before the processes of one service start; they then count into files that any of them can add up.
FOLDER_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
NO_ROUTE: Final = "unmatched"
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"})
_MOST_MODELS: Final = 2_000
_OTHER: Final = "other"
_BUCKETS_S: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """The figures of one process, or of all processes of a service.

    Parameters
    ----------
    problems : iterable of str
        Every kind of problem there is: each is shown from the start, so that its first is seen as an increase.
    shares_limits : bool
        Whether there is a Redis that can be away.
    """

    def __init__(self, *, problems: Iterable[str], shares_limits: bool) -> None:
        # When a figure began is of no use, and doubles what is read.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        registry = self._registry = CollectorRegistry()
        self._requests = Histogram(
            "costsvc_request_duration_seconds",
            "Time from the request to the end of its answer.",
            ("method", "route", "status"),
            buckets=_BUCKETS_S,
            registry=registry,
        )
        self._problems = Counter(
            "costsvc_problems", "Errors answered, by kind of problem.", ("kind",), registry=registry
        )
        for kind in problems:
            self._problems.labels(kind)
        self._quotes = Counter(
            "costsvc_quotes", "Quotes computed, by what binds them.", ("model", "bound"), registry=registry
        )
        answers = Counter(
            "costsvc_answer_cache", "Answers looked for in memory.", ("outcome",), registry=registry
        )
        self._found, self._missed = answers.labels("hit"), answers.labels("miss")
        limits = Counter(
            "costsvc_rate_limit_decisions", "Requests counted at the door.", ("decision",), registry=registry
        )
        self._allowed, self._refused = limits.labels("allowed"), limits.labels("refused")
        self._revision = _gauge(
            "costsvc_catalog_revision", "Revision of the catalog in memory.", "livemin", registry
        )
        self._age = _gauge(
            "costsvc_snapshot_age_seconds",
            "How long the database has not confirmed the catalog in memory; 0 while it does.",
            "livemax",
            registry,
        )
        self._shared = (
            _gauge(
                "costsvc_shared_limits_reachable",
                "1 where limits are shared through Redis, 0 where it is away; absent without one.",
                "livemin",
                registry,
            )
            if shares_limits
            else None
        )
        self._waiting = _gauge(
            "costsvc_heavy_work_waiting", "Long answers that wait for their turn.", "livesum", registry
        )
        self._requests_of: dict[tuple[str, str, int], Histogram] = {}
        self._quotes_of: dict[tuple[str, str], Counter] = {}
        self._models: set[str] = set()
        if FOLDER_VARIABLE in os.environ:
            _forget_the_dead(Path(os.environ[FOLDER_VARIABLE]))
        else:
            ProcessCollector(registry=registry)

    def observe(self, scope: Scope, status: int, taken_s: float) -> None:
        """Count an answered request."""
        method = scope.get("method", "")
        of = (method if method in _METHODS else _OTHER, scope.get("path_template") or NO_ROUTE, status)
        counted = self._requests_of.get(of)
        if counted is None:
            counted = self._requests_of[of] = self._requests.labels(*of)
        counted.observe(taken_s)
        if (kind := scope["state"].get("problem")) is not None:
            self._problems.labels(kind).inc()

    def quoted(self, model: str, bound: str) -> None:
        """Count a computed quote by the catalog's id of its model."""
        of = self._named(model), bound
        counted = self._quotes_of.get(of)
        if counted is None:
            counted = self._quotes_of[of] = self._quotes.labels(*of)
        counted.inc()

    def _named(self, model: str) -> str:
        """A model, or what stands for all beyond the most that are shown."""
        if model not in self._models:
            if len(self._models) >= _MOST_MODELS:
                return _OTHER
            self._models.add(model)
        return model

    def looked_up(self, is_held: bool) -> None:
        """Count an answer that was looked for in memory."""
        (self._found if is_held else self._missed).inc()

    def limited(self, is_allowed: bool) -> None:
        """Count a decision at the door."""
        (self._allowed if is_allowed else self._refused).inc()

    def state(
        self, *, revision: int | None, stale_s: float, waiting: int, shares_limits: bool | None
    ) -> None:
        """Show what holds now: what is in memory, how much waits, and whether Redis is reached."""
        self._revision.set(revision or 0)
        self._age.set(stale_s)
        self._waiting.set(waiting)
        if self._shared is not None and shares_limits is not None:
            self._shared.set(shares_limits)

    def exposed(self) -> bytes:
        """Everything, in the text format of Prometheus."""
        if FOLDER_VARIABLE not in os.environ:
            return generate_latest(self._registry)
        every = CollectorRegistry()
        MultiProcessCollector(every)  # type: ignore[no-untyped-call]
        return generate_latest(every)


def _gauge(
    name: str,
    meaning: str,
    over_processes: Literal["livemin", "livemax", "livesum"],
    registry: CollectorRegistry,
) -> Gauge:
    return Gauge(name, meaning, multiprocess_mode=over_processes, registry=registry)


def _forget_the_dead(folder: Path) -> None:
    """Take out what processes that ended show of themselves; what they counted stays."""
    for file in folder.glob("gauge_live*.db"):
        process = file.stem.rpartition("_")[2]
        if process.isdigit() and not Path(f"/proc/{process}").exists() and Path("/proc/self").exists():
            file.unlink(missing_ok=True)
