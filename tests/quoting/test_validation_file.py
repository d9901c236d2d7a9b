"""The held-out points that the accuracy page draws: as calibrated, and beside what was measured."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from costsvc.quoting.validation_file import HELD_OUT, VALIDATION, read_points
from tests.docs.pages import ROOT

CATALOG = ROOT / "catalog"


def test_the_points_are_those_of_the_figures() -> None:
    figures = json.loads((CATALOG / VALIDATION).read_text(encoding="utf-8"))
    (output,) = (
        one for one in figures["held_out"] if one["quantity"] == "output tokens/s" and one["regime"] == "all"
    )
    ratios = np.asarray([point["predicted_over_measured"] for point in read_points(CATALOG)])
    assert len(ratios) == output["points"]
    assert np.median(np.abs(ratios - 1)) == pytest.approx(output["median_error_share"], abs=1e-3)


def test_each_point_stands_beside_the_rate_that_its_row_has() -> None:
    points = {point["id"]: point for point in read_points(CATALOG)}
    with (CATALOG / "measured" / "throughput_core.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["id"] in points and row["output_tok_s"]]
    assert len(rows) > 100
    for row in rows:
        assert points[row["id"]]["measured_output_tok_s"] == float(row["output_tok_s"])


def test_a_folder_without_points_has_none(tmp_path: Path) -> None:
    assert read_points(tmp_path) == ()


def test_points_whose_measured_rows_are_not_there_have_no_rate(tmp_path: Path) -> None:
    file = tmp_path / HELD_OUT
    file.parent.mkdir()
    file.write_text(
        "id,model,gpu,stack,gpus,weights,rate_ratio,tpot_ratio,ttft_ratio\na,m,g,s,8,bf16,1.1,,\nb,m,g,s,8,bf16,,1,\n"
    )
    (point,) = read_points(tmp_path)
    assert point["measured_output_tok_s"] is None
    assert (point["gpus"], point["predicted_over_measured"]) == (8, 1.1)
