"""The accuracy of a catalog on a folder of measured points, as one plain structure for every reader."""

import csv
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from costsvc.db.snapshot import Catalog
from costsvc.quoting.accuracy import REGIMES, band_figure, by_configuration, by_regime, figure, headline
from costsvc.quoting.answer.plain import Plain, Section
from costsvc.quoting.calibrate import Errors, predicted_errors
from costsvc.quoting.measured import LeftOut, Measurement, read_measurements
from costsvc.quoting.prefix_pairs import PAIRS, pair_errors, read_pairs

CORE, SUPERSET = "throughput_core.csv", "throughput_all.csv"
DIGITS = 4
LEFT_OUT_SHOWN = 20


def point_files(folder: Path) -> list[Path]:
    """Tables of throughput in a folder; a superset named `_all` is left aside beside a `_core`."""
    found = sorted(folder.glob("throughput_*.csv"))
    is_doubled = CORE in {path.name for path in found}
    return [path for path in found if not (is_doubled and path.name == SUPERSET)]


def validation_of(catalog: Catalog, folder: Path, held_out_file: Path) -> tuple[Section, Errors]:
    """Figures on all points of a folder, in sample and held out, and the held-out errors behind them."""
    kept, left = read_measurements(catalog, point_files(folder))
    errors = predicted_errors(catalog, kept)
    all_held_out = read_held_out(held_out_file, kept) if held_out_file.is_file() else errors
    errors, held_out = errors.of_mode("colocated"), all_held_out.of_mode("colocated")
    bands = band_figure(held_out, catalog.judgements)
    section: Section = {
        "points": len(kept),
        "left_out": len(left),
        "held_out": [_plain(one.plain()) for one in headline(held_out)],
        "headline": [_plain(one.plain()) for one in headline(errors)],
        "each_configuration_once": [_plain(one.plain()) for one in by_configuration(held_out)],
        "bands": {
            "points": bands.points,
            "inside_share": round(bands.inside_share, DIGITS),
            "median_half_width_share": round(bands.median_half_width_share, DIGITS),
        },
        "held_out_regimes": {
            name: [_plain(one.plain()) for one in by_regime(held_out, name)] for name in REGIMES
        },
        "disaggregated": _latency_figures(all_held_out.of_mode("disaggregated")),
        "prefix_pairs": _pair_figures(catalog, folder),
        "reasons_left_out": _reasons(left),
    }
    return section, held_out


def _latency_figures(errors: Errors) -> list[Plain]:
    pairs = (("TPOT", errors.tpot), ("TTFT", errors.ttft))
    found = (figure(name, "disaggregated", ratios) for name, ratios in pairs)
    return [_plain(one.plain()) for one in found if one is not None]


def _pair_figures(catalog: Catalog, folder: Path) -> Section:
    """Warm over cold of published pairs, and the pairs left out."""
    path = folder / PAIRS
    if not path.is_file():
        return {"figures": [], "reasons_left_out": []}
    kept, left = read_pairs(catalog, path)
    errors = pair_errors(catalog, kept)
    named = (("output tokens/s, warm over cold", errors.rate), ("TTFT, warm over cold", errors.ttft))
    found = (figure(name, "hit rate known", ratios) for name, ratios in named)
    figures: list[Plain] = [_plain(one.plain()) for one in found if one is not None]
    return {"figures": figures, "reasons_left_out": _reasons(left)}


def _reasons(left: Iterable[LeftOut]) -> list[Plain]:
    counted = Counter(_without_names(one.reason) for one in left)
    return [{"rows": rows, "reason": reason} for reason, rows in counted.most_common(LEFT_OUT_SHOWN)]


def _without_names(reason: str) -> str:
    """The first sentence, which is what rows of one kind share."""
    return reason.split(". ", 1)[0].rstrip(".")


def _plain(values: Mapping[str, object]) -> Section:
    section: Section = {}
    for name, value in values.items():
        section[name] = round(value, DIGITS) if isinstance(value, float) else str(value)
        if isinstance(value, int):
            section[name] = value
    return section


def held_out_rows(errors: Errors) -> list[list[str]]:
    """Predicted over measured of each held-out point, as a table. NaN is blank."""
    rows = [["id", "model", "gpu", "stack", "gpus", "weights", "rate_ratio", "tpot_ratio", "ttft_ratio"]]
    for one, *ratios in zip(errors.measurements, errors.rate, errors.tpot, errors.ttft, strict=True):
        rows.append([one.id, *one.configuration, *(_cell(ratio) for ratio in ratios)])
    return rows


def read_held_out(path: Path, measurements: Iterable[Measurement]) -> Errors:
    """The table again, for the points that are still there."""
    by_id = {one.id: one for one in measurements}
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["id"] in by_id]

    def column(name: str) -> np.ndarray:
        return np.asarray([float(row[name]) if row[name] else np.nan for row in rows])

    return Errors(
        measurements=tuple(by_id[row["id"]] for row in rows),
        rate=column("rate_ratio"),
        tpot=column("tpot_ratio"),
        ttft=column("ttft_ratio"),
    )


def _cell(ratio: float) -> str:
    return f"{ratio:.4f}" if np.isfinite(ratio) else ""
