"""How far predictions are from measurements: figures by regime, for the report and for `GET /validation`."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from costsvc.db.judgements import Judgements
from costsvc.quoting.calibrate import Errors
from costsvc.quoting.case import architecture_of
from costsvc.quoting.measured import Measurement

Vector = NDArray[np.float64]
Key = Callable[[Measurement], str]

LEAST_SHOWN = 5
CONCURRENCY_EDGES = (1, 4, 16, 64, 256)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Errors of one quantity in one regime: |predicted / measured - 1| and its sign. [1]"""

    quantity: str
    regime: str
    points: int
    median_error_share: float
    p90_error_share: float
    bias_share: float

    def plain(self) -> dict[str, object]:
        """As it is answered."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class BandFigure:
    """How the bands do: share of points inside, and how wide they are. [1]"""

    points: int
    inside_share: float
    median_half_width_share: float


def _concurrency(one: Measurement) -> str:
    offered = float(one.point.offered.concurrency[0, 0])
    if not np.isfinite(offered):
        return "as many as fit"
    below = [edge for edge in CONCURRENCY_EDGES if edge >= offered]
    return f"up to {below[0]}" if below else f"above {CONCURRENCY_EDGES[-1]}"


REGIMES: Mapping[str, Key] = {
    "table": lambda one: one.table,
    "architecture": lambda one: architecture_of(one.point.model.spec),
    "generation": lambda one: one.point.gpu.spec.generation,
    "accelerator": lambda one: one.point.gpu.id,
    "stack": lambda one: one.point.stack.id,
    "weights": lambda one: one.point.deployment.weights.id,
    "load": lambda one: one.point.offered.mode,
    "concurrency": _concurrency,
    "accelerators": lambda one: str(one.point.deployment.gpus),
}


def figure(quantity: str, regime: str, ratios: Vector, weights: Vector | None = None) -> Figure | None:
    """The figure of predicted-over-measured ratios; None where nothing was measured.

    Parameters
    ----------
    weights : array, optional
        How much each point counts; all alike where left out. [1]
    """
    known = np.isfinite(ratios)
    errors = ratios[known] - 1.0
    if not len(errors):
        return None
    counts = None if weights is None else weights[known]
    return Figure(
        quantity=quantity,
        regime=regime,
        points=len(errors),
        median_error_share=_percentile(np.abs(errors), 50.0, counts),
        p90_error_share=_percentile(np.abs(errors), 90.0, counts),
        bias_share=_percentile(errors, 50.0, counts),
    )


def _percentile(values: Vector, percent: float, weights: Vector | None) -> float:
    if weights is None:
        return float(np.percentile(values, percent))
    return float(np.percentile(values, percent, method="inverted_cdf", weights=weights))


def headline(errors: Errors) -> list[Figure]:
    """Rate, TPOT and TTFT over all points, TPOT where the load is a number in flight, and the rate by architecture."""
    found = [
        figure("output tokens/s", "all", errors.rate),
        figure("TPOT", "all", errors.tpot),
        figure("TPOT", "concurrency stated", errors.tpot[concurrency_stated(errors)]),
        figure("TTFT", "all", errors.ttft),
    ]
    return [one for one in found if one is not None] + by_regime(errors, "architecture")


def concurrency_stated(errors: Errors) -> NDArray[np.bool_]:
    """Which points were measured with a stated number in flight, and not at a rate of arrivals."""
    offered = [one.point.offered for one in errors.measurements]
    return np.asarray([one.mode != "server" and np.isfinite(one.concurrency).all() for one in offered], bool)


def by_regime(errors: Errors, regime: str) -> list[Figure]:
    """The rate's figures in each value of a regime that has points enough to speak of."""
    rows: dict[str, list[int]] = defaultdict(list)
    for index, one in enumerate(errors.measurements):
        rows[REGIMES[regime](one)].append(index)
    figures = (figure("output tokens/s", name, errors.rate[rows[name]]) for name in sorted(rows))
    return [one for one in figures if one is not None and one.points >= LEAST_SHOWN]


def by_configuration(errors: Errors) -> list[Figure]:
    """The rate of all points and of each table, weighted so that every configuration counts once."""
    known = np.isfinite(errors.rate)
    sizes = Counter(one.configuration for one, has in zip(errors.measurements, known, strict=True) if has)
    weights = np.asarray([1.0 / max(sizes[one.configuration], 1) for one in errors.measurements])
    tables = np.asarray([one.table for one in errors.measurements])
    parts = [("all", known), *((name, known & (tables == name)) for name in sorted(set(tables)))]
    found = (figure("output tokens/s", name, errors.rate[of], weights[of]) for name, of in parts)
    return [one for one in found if one is not None]


def band_figure(errors: Errors, judgements: Judgements) -> BandFigure:
    """Bands of the calibration against the points."""
    inside, widths = [], []
    for one, ratio in zip(errors.measurements, errors.rate, strict=True):
        if np.isfinite(ratio):
            low, high = band_of(one, judgements)
            inside.append(low <= ratio <= high)
            widths.append((high - low) / 2)
    return BandFigure(
        points=len(inside),
        inside_share=float(np.mean(inside)) if inside else 0.0,
        median_half_width_share=float(np.median(widths)) if widths else 0.0,
    )


def band_of(one: Measurement, judgements: Judgements) -> tuple[float, float]:
    """Low and high ratio of a point's regime. [1]"""
    point = one.point
    scope = {
        "gpu": point.gpu.id,
        "generation": point.gpu.spec.generation,
        "stack": point.stack.id,
        "architecture": architecture_of(point.model.spec),
    }
    return judgements.find("band_low_ratio", scope).value, judgements.find("band_high_ratio", scope).value
