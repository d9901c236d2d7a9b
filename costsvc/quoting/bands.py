"""Error bands and the measured region, from the errors on held-out configurations."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import date

import numpy as np

from costsvc.db.entries import Judgement
from costsvc.quoting.calibrate import Errors
from costsvc.quoting.case import architecture_of
from costsvc.quoting.measured import Measurement

Scope = tuple[tuple[str, str], ...]

LOW_PERCENTILE, HIGH_PERCENTILE = 10.0, 90.0
LEAST_POINTS = 40
LEVELS: tuple[tuple[str, ...], ...] = (
    (),
    ("architecture",),
    ("generation",),
    ("architecture", "generation"),
    ("generation", "stack"),
    ("architecture", "generation", "stack"),
)
FEW_POINTS_WIDENING_SHARE = 0.4


def bands(errors: Errors, dated: date, source_id: str) -> list[Judgement]:
    """Bands of every regime with points enough; wider by :math:`1/\\sqrt{n}` where they are few."""
    found = []
    for scope, ratios in _regimes(errors).items():
        if scope and len(ratios) < LEAST_POINTS:
            continue
        widening = 1.0 + FEW_POINTS_WIDENING_SHARE / np.sqrt(len(ratios))
        low, high = np.exp(widening * np.percentile(np.log(ratios), [LOW_PERCENTILE, HIGH_PERCENTILE]))
        for name, value in (("band_low_ratio", min(low, 1.0)), ("band_high_ratio", max(high, 1.0))):
            found.append(_judgement(name, float(value), "1", scope, len(ratios), dated, source_id))
    return found


def measured_region(measurements: Sequence[Measurement], dated: date, source_id: str) -> list[Judgement]:
    """Points, longest context and most accelerators of each generation."""
    by_generation: dict[str, list[Measurement]] = defaultdict(list)
    for one in measurements:
        by_generation[one.point.gpu.spec.generation].append(one)
    found = [
        Judgement(
            name=name,
            value=0.0,
            unit=unit,
            kind="estimate",
            dated=dated,
            source_id=source_id,
            reason="No throughput was measured on other generations",
        )
        for name, unit in (
            ("measured_points", "points"),
            ("measured_context_tokens", "token"),
            ("measured_gpus", "GPU"),
        )
    ]
    for generation, members in sorted(by_generation.items()):
        scope: Scope = (("generation", generation),)
        longest = max(one.point.traffic.context_limit_tokens for one in members)
        most = max(one.point.deployment.gpus for one in members)
        for name, value, unit in (
            ("measured_points", len(members), "points"),
            ("measured_context_tokens", longest, "token"),
            ("measured_gpus", most, "GPU"),
        ):
            found.append(_judgement(name, float(value), unit, scope, len(members), dated, source_id))
    return found


def _regimes(errors: Errors) -> dict[Scope, np.ndarray]:
    ratios: dict[Scope, list[float]] = defaultdict(list)
    for one, ratio in zip(errors.measurements, errors.rate, strict=True):
        if np.isfinite(ratio):
            where = _where(one)
            for level in LEVELS:
                ratios[tuple((key, where[key]) for key in level)].append(float(ratio))
    return {scope: np.asarray(values) for scope, values in sorted(ratios.items())}


def _where(one: Measurement) -> dict[str, str]:
    point = one.point
    return {
        "generation": point.gpu.spec.generation,
        "stack": point.stack.id,
        "architecture": architecture_of(point.model.spec),
    }


def _judgement(
    name: str, value: float, unit: str, scope: Scope, points: int, dated: date, source_id: str
) -> Judgement:
    return Judgement(
        name=name,
        value=float(f"{value:.4g}"),
        unit=unit,
        kind="measured",
        dated=dated,
        source_id=source_id,
        scope=scope,
        points=points,
    )


def coverage_share(ratios: Iterable[float], low: Iterable[float], high: Iterable[float]) -> float:
    """Share of points whose predicted-over-measured ratio lies inside its band. [1]"""
    inside = [lo <= ratio <= hi for ratio, lo, hi in zip(ratios, low, high, strict=True)]
    return float(np.mean(inside)) if inside else 0.0
