"""The accuracy page: a validation as text and pictures."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from costsvc.quoting.answer.plain import Section
from costsvc.quoting.calibrate import Errors
from costsvc.quoting.plots import draw
from costsvc.quoting.validation_file import VALIDATION

PICTURES = "pictures"

HEAD = """# How far the numbers are off

Written by `costsvc validate`; do not edit by hand. Errors are |predicted / measured - 1|; bias is the median of
predicted / measured - 1. *Held out* means predicted by a fit that had not seen the configuration (model x
accelerator x stack x accelerators x dtype): what to expect on a new one. *In sample* means the shipped
calibration, on the points it was fitted to.

Nothing was measured by us: the points are published ones, compiled in `catalog/measured` with their sources.
What the figures mean, which aims they miss and why: [Reading the accuracy page](accuracy-notes.md#what-is-left).
"""


def write_report(out: Path, validation: Section, errors: Errors, root: Path) -> None:
    """Write accuracy.md with its pictures, and the same figures as JSON for the service."""
    (out / PICTURES).mkdir(parents=True, exist_ok=True)
    pictures = draw(errors, out / PICTURES)
    (out / "accuracy.md").write_text(_page(validation, pictures), encoding="utf-8")
    (root / VALIDATION).write_text(json.dumps(validation, indent=1) + "\n", encoding="utf-8")


def _page(validation: Section, pictures: Mapping[str, str]) -> str:
    held = cast("list[Section]", validation["held_out"])
    seen = cast("list[Section]", validation["headline"])
    bands = cast("Section", validation["bands"])
    parts = [
        HEAD,
        "## In one minute\n",
        f"{validation['points']} points are used, {validation['left_out']} rows left out (reasons below).\n",
        _table("Held out", held),
        _table("In sample", seen),
        f"The 10-90 bands hold {_share(bands['inside_share'])} of the held-out points; their median half-width is "
        f"{_share(bands['median_half_width_share'])}.\n",
        _gallery(pictures),
        "## By regime, held out\n",
    ]
    once = cast("list[Section]", validation["each_configuration_once"])
    parts.append(_table("Each configuration counting once", once))
    for name, rows in cast("dict[str, list[Section]]", validation["held_out_regimes"]).items():
        parts.append(_table(name.capitalize(), rows))
    parts.append(_table("Disaggregated deployments", cast("list[Section]", validation["disaggregated"])))
    pairs = cast("Section", validation["prefix_pairs"])
    parts.append(_table("Prefix caching", cast("list[Section]", pairs["figures"])))
    parts += _reasons("Rows left out", cast("list[Section]", validation["reasons_left_out"]))
    parts += _reasons("Prefix pairs left out", cast("list[Section]", pairs["reasons_left_out"]))
    return "\n".join(parts)


def _table(title: str, rows: Sequence[Section]) -> str:
    if not rows:
        return ""
    lines = [
        f"### {title}\n",
        "| quantity | regime | points | median error | 90th percentile | bias |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        lines.append(
            f"| {row['quantity']} | {row['regime']} | {row['points']} | {_share(row['median_error_share'])} | "
            f"{_share(row['p90_error_share'])} | {_share(row['bias_share'], signed=True)} |"
        )
    return "\n".join(lines) + "\n"


def _gallery(pictures: Mapping[str, str]) -> str:
    return "\n".join(f"![{title}]({PICTURES}/{name})\n" for name, title in pictures.items())


def _reasons(title: str, rows: Sequence[Section]) -> list[str]:
    if not rows:
        return []
    lines = [f"## {title}\n", "| rows | reason |", "|---|---|"]
    lines += [f"| {row['rows']} | {str(row['reason']).replace('|', '/')} |" for row in rows]
    return ["\n".join(lines) + "\n"]


def _share(value: object, *, signed: bool = False) -> str:
    number = cast("float", value)
    return f"{number:+.1%}" if signed else f"{number:.1%}"
