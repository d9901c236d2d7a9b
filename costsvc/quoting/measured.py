"""Measured points: the rows of a folder of published benchmarks, grouped so that they are run together."""

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from costsvc.db.snapshot import Catalog
from costsvc.engine.loads import Offered
from costsvc.engine.memory import Lengths
from costsvc.engine.search import Array
from costsvc.errors import CostsvcError
from costsvc.quoting.points import number_of, text_of
from costsvc.quoting.predict import Point, point_of

TRUSTED_TIERS = frozenset({"", "A", "B"})
SHEET, UNFINISHED, EAGER = "source_file=", "wip=True", "enforce_eager"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One row of a table: the point and what was measured. NaN where the source does not say. [token/s], [s]"""

    id: str
    source: str
    table: str = ""
    point: Point
    output_tokens_per_s: float
    ttft_s: float
    tpot_s: float

    @property
    def configuration(self) -> tuple[str, ...]:
        """Model, accelerator, stack, accelerators and dtype: what cross-validation keeps together."""
        point = self.point
        layout = point.deployment
        return point.model.id, point.gpu.id, point.stack.id, str(layout.gpus), layout.weights.id


@dataclass(frozen=True, slots=True, kw_only=True)
class PointGroup:
    """Measurements of one layout under loads of one mode, as arrays; rates are of one replica. (1, points)"""

    measurements: tuple[Measurement, ...]
    lengths: Lengths
    offered: Offered
    output_tokens_per_s: Array
    ttft_s: Array
    tpot_s: Array

    @property
    def point(self) -> Point:
        """Model, accelerator, stack and layout, which all share."""
        return self.measurements[0].point


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A row that is not used, and why."""

    id: str
    reason: str


def read_measurements(catalog: Catalog, files: Iterable[Path]) -> tuple[list[Measurement], list[LeftOut]]:
    """Rows of throughput tables that the catalog can resolve and whose tier may be calibrated on."""
    kept: list[Measurement] = []
    left: list[LeftOut] = []
    for path in files:
        for row in _rows(path):
            id = row.get("id", "")
            if EAGER in (row.get("notes") or ""):
                left.append(LeftOut(id=id, reason="it ran without the graphs that engines replay by default"))
                continue
            if (row.get("tier") or "").strip() not in TRUSTED_TIERS:
                left.append(LeftOut(id=id, reason=f"tier {row['tier']}: not to be calibrated on"))
                continue
            try:
                found = _measurement(catalog, row, path.stem)
            except CostsvcError as error:
                left.append(LeftOut(id=id, reason=error.message))
                continue
            doubt = _unknown_load(row, found) or _doubt(found)
            if doubt is None:
                kept.append(found)
            else:
                left.append(LeftOut(id=id, reason=doubt))
    return kept, left


def grouped(measurements: Iterable[Measurement]) -> list[PointGroup]:
    """Measurements by layout and mode."""
    groups: dict[object, list[Measurement]] = {}
    for one in measurements:
        point = one.point
        layout = point.deployment
        key = (
            *one.configuration,
            layout.tp,
            layout.pp,
            layout.dp,
            layout.ep,
            layout.kv.id,
            layout.mode,
            point.offered.mode,
            bool(np.isfinite(point.offered.rps).all()),
        )
        groups.setdefault(key, []).append(one)
    return [_group(tuple(members)) for members in groups.values()]


def _doubt(one: Measurement) -> str | None:
    """Why a row may have been decoded several tokens at a time without saying so.

    The sheets of nightly sweeps have no field for speculative decoding, and the same layout stands in them with
    steps 1.3 to 2 times apart; the database of the same benchmark names such runs.
    """
    if UNFINISHED in one.source:
        return "its source marks the run as unfinished work"
    if one.source.startswith(SHEET) and one.point.model.spec.mtp_parameters:
        return "its sheet has no field for speculative decoding, and the model ships multi-token prediction"
    return None


def _unknown_load(row: Mapping[str, str], one: Measurement) -> str | None:
    """Why the load of a run that states no rate of arrivals cannot be told from what left.

    Where all are served as they come, as many come as leave; where they wait longer than they are served,
    what left is a result.
    """
    silent = text_of(row, "mode") == "server" and not text_of(row, "rps")
    waits = one.ttft_s > one.tpot_s * one.point.traffic.output_tokens
    if silent and waits and not text_of(row, "concurrency_or_batch"):
        return "it states no rate of arrivals, and its requests wait longer than they are served"
    return None


def _rows(path: Path) -> Iterator[Mapping[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file)


def _measurement(catalog: Catalog, row: Mapping[str, str], table: str) -> Measurement:
    renamed = {**row}
    if text_of(row, "concurrency_or_batch"):
        renamed["concurrency"] = row["concurrency_or_batch"]
    if text_of(row, "mode") == "server" and not text_of(row, "rps"):
        renamed["rps"] = row.get("req_s") or ""
    prefix = "silicon_" if "decode_tp_size" in row else ""
    rate = number_of(row, "output_tok_s") or number_of(row, "derived_output_tok_s")
    return Measurement(
        id=row.get("id", ""),
        source=row.get("source") or row.get("silicon_data_source") or "",
        table=table,
        point=point_of(catalog, renamed),
        output_tokens_per_s=rate or np.nan,
        ttft_s=(number_of(row, f"{prefix}ttft_ms") or np.nan) / 1e3,
        tpot_s=(number_of(row, f"{prefix}tpot_ms") or np.nan) / 1e3,
    )


def _group(members: tuple[Measurement, ...]) -> PointGroup:
    def row(values: Iterable[float]) -> Array:
        return np.asarray([list(values)], dtype=np.float64)

    traffic = [one.point.traffic for one in members]
    offered = [one.point.offered for one in members]
    lengths = Lengths(
        uncached=row(t.uncached_input_tokens for t in traffic),
        cached=row(t.cached_input_tokens for t in traffic),
        output=row(t.output_tokens for t in traffic),
        shared=row(0.0 for _ in traffic),
        input_cv=0.0,
        output_cv=0.0,
        context_limit=row(t.context_limit_tokens for t in traffic),
    )
    return PointGroup(
        measurements=members,
        lengths=lengths,
        offered=replace(
            offered[0],
            concurrency=np.concatenate([o.concurrency for o in offered], axis=1),
            rps=np.concatenate([o.rps for o in offered], axis=1),
            max_batch=np.concatenate([o.max_batch for o in offered], axis=1),
            prefill_ratio=np.concatenate([o.prefill_ratio for o in offered], axis=1),
        ),
        output_tokens_per_s=row(one.output_tokens_per_s / one.point.replicas for one in members),
        ttft_s=row(one.ttft_s for one in members),
        tpot_s=row(one.tpot_s for one in members),
    )
