"""The figures of the last validation as they lie in a catalog: read without what computes them."""

import csv
import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from costsvc.quoting.answer.plain import Plain, Section

VALIDATION = "fit/validation.json"
HELD_OUT = "fit/held_out.csv"
MEASURED = "measured"


def read_validation(root: Path) -> Section | None:
    """The figures that the last validation wrote into a catalog folder."""
    path = root / VALIDATION
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


@lru_cache(maxsize=1)
def read_points(root: Path) -> tuple[Section, ...]:
    """Every held-out point whose rate is known: what was measured, and predicted over measured.

    Returns
    -------
    tuple
        Empty where the folder holds no such points. `measured_output_tok_s` [token/s] is null where the
        measured rows are not beside them.
    """
    path = root / HELD_OUT
    if not path.is_file():
        return ()
    measured = dict(_rates(root / MEASURED))
    return tuple(_point(row, measured) for row in _rows(path) if row["rate_ratio"])


def _point(row: dict[str, str], measured: dict[str, float]) -> Section:
    point: dict[str, Plain] = {name: row[name] for name in ("id", "model", "gpu", "stack", "weights")}
    return point | {
        "gpus": int(row["gpus"]),
        "measured_output_tok_s": measured.get(row["id"]),
        "predicted_over_measured": float(row["rate_ratio"]),
    }


def _rates(folder: Path) -> Iterator[tuple[str, float]]:
    for path in sorted(folder.glob("throughput_*.csv")):
        for row in _rows(path):
            rate = row.get("output_tok_s") or row.get("derived_output_tok_s")
            if rate:
                yield row["id"], float(rate)


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file)
