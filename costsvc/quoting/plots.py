"""Pictures of a validation: predicted against measured, and errors by regime."""

from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from costsvc.quoting.accuracy import REGIMES
from costsvc.quoting.calibrate import Errors

SHOWN_RANGE = (-0.8, 1.2)
BOXED = ("concurrency", "generation", "stack")


def draw(errors: Errors, folder: Path) -> Mapping[str, str]:
    """Write SVG files; file names to what they show. The same errors make the same bytes."""
    pictures = {"predicted.svg": "Predicted against measured output tokens/s"}
    _save(_scatter(errors), folder / "predicted.svg")
    for regime in BOXED:
        name = f"error_by_{regime}.svg"
        pictures[name] = f"Error by {regime}"
        _save(_boxes(errors, regime), folder / name)
    return pictures


def _scatter(errors: Errors) -> Figure:
    figure = Figure(figsize=(6, 5), layout="constrained")
    axes = figure.add_subplot()
    measured = np.asarray([one.output_tokens_per_s for one in errors.measurements])
    known = np.isfinite(errors.rate) & np.isfinite(measured)
    for generation in sorted({one.point.gpu.spec.generation for one in errors.measurements}):
        of = known & np.asarray([one.point.gpu.spec.generation == generation for one in errors.measurements])
        axes.scatter(measured[of], measured[of] * errors.rate[of], s=8, alpha=0.5, label=generation)
    ends = [float(np.nanmin(measured[known])), float(np.nanmax(measured[known]))]
    axes.plot(ends, ends, color="black", linewidth=0.8)
    axes.set(
        xscale="log", yscale="log", xlabel="measured output tokens/s", ylabel="predicted output tokens/s"
    )
    axes.legend(fontsize=8)
    return figure


def _boxes(errors: Errors, regime: str) -> Figure:
    figure = Figure(figsize=(7, 3.5), layout="constrained")
    axes = figure.add_subplot()
    key = REGIMES[regime]
    groups: dict[str, list[float]] = {}
    for one, ratio in zip(errors.measurements, errors.rate, strict=True):
        if np.isfinite(ratio):
            groups.setdefault(key(one), []).append(float(ratio) - 1.0)
    labels = sorted(groups)
    axes.boxplot([groups[label] for label in labels], showfliers=False, whis=(10, 90))
    axes.set_xticks(
        range(1, len(labels) + 1), [f"{label}\n{len(groups[label])}" for label in labels], fontsize=8
    )
    axes.axhline(0.0, color="black", linewidth=0.8)
    axes.set(ylabel="predicted / measured - 1", ylim=SHOWN_RANGE)
    return figure


def _save(figure: Figure, path: Path) -> None:
    with mpl.rc_context({"svg.hashsalt": "costsvc", "svg.fonttype": "none"}):
        figure.savefig(path, format="svg", metadata={"Date": None})
