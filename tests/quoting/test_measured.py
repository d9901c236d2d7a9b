"""Rows of published tables: which release ran, why a row is left out, and how much each counts."""

import csv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from costsvc.db.snapshot import Catalog
from costsvc.quoting.accuracy import by_configuration
from costsvc.quoting.calibrate import predicted_errors
from costsvc.quoting.measured import Measurement, read_measurements

ROW = {
    "id": "p1",
    "source": "made",
    "engine": "vllm",
    "engine_version": "0.19.0",
    "model": "llama-3.1-8b",
    "gpu": "h100-sxm",
    "n_gpus": "1",
    "isl": "512",
    "osl": "128",
    "tier": "A",
    "output_tok_s": "1000",
}


def read(catalog: Catalog, folder: Path, *rows: Mapping[str, str]) -> tuple[list[Measurement], list[str]]:
    path = folder / "throughput_made.csv"
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)
    kept, left = read_measurements(catalog, [path])
    return kept, [one.reason for one in left]


def test_a_server_that_was_flooded_says_nothing_of_its_load(catalog: Catalog, tmp_path: Path) -> None:
    met = {**ROW, "mode": "server", "req_s": "8", "ttft_ms": "200", "tpot_ms": "20"}
    flooded = {**met, "id": "p2", "ttft_ms": "20000"}
    kept, reasons = read(catalog, tmp_path, met, flooded)
    assert [one.id for one in kept] == ["p1"]
    assert float(kept[0].point.offered.rps[0, 0]) == 8.0
    assert "wait longer than they are served" in reasons[0]


@pytest.mark.parametrize(
    ("date", "stack"),
    [
        ("2024", "vllm-0.6"),
        ("2024-10-10", "vllm-0.6"),
        ("2025", "vllm"),
        ("2025-09", "vllm"),
        ("12 May 2026", "vllm"),
        ("", "vllm"),
    ],
)
def test_a_day_tells_the_release_where_the_table_does_not(
    catalog: Catalog, tmp_path: Path, date: str, stack: str
) -> None:
    row = {**ROW, "engine_version": "", "date": date, "mode": "static", "concurrency_or_batch": "8"}
    (one,), _ = read(catalog, tmp_path, row)
    assert one.point.stack.id == stack
    (named,), _ = read(catalog, tmp_path, {**row, "engine_version": "0.19.0"})
    assert named.point.stack.id == "vllm"


def test_a_run_without_graphs_is_left_out_with_a_reason(catalog: Catalog, tmp_path: Path) -> None:
    eager = {**ROW, "mode": "static", "concurrency_or_batch": "8", "notes": "offline, enforce_eager"}
    kept, reasons = read(catalog, tmp_path, eager, {**eager, "id": "p2", "notes": "eager=False"})
    assert [one.id for one in kept] == ["p2"]
    assert "graphs" in reasons[0]


def test_a_long_sweep_counts_no_more_than_one_point(catalog: Catalog, tmp_path: Path) -> None:
    sweep = [{**ROW, "id": f"a{n}", "mode": "static", "concurrency_or_batch": str(n)} for n in (1, 2, 4)]
    alone = {**sweep[0], "id": "b", "model": "llama-3-70b", "n_gpus": "4"}
    kept, _ = read(catalog, tmp_path, *sweep, alone)
    ratios = np.asarray([1.1 if one.id.startswith("a") else 1.4 for one in kept])
    errors = replace(predicted_errors(catalog, kept), measurements=tuple(kept), rate=ratios)
    whole, table = by_configuration(errors)
    assert (whole.regime, table.regime) == ("all", "throughput_made")
    assert whole.p90_error_share == pytest.approx(0.4)
    assert whole.median_error_share == pytest.approx(0.1)


COPIES = {**ROW, "n_gpus": "8", "tp": "2", "dp": "4", "mode": "continuous", "concurrency_or_batch": "32"}


@pytest.mark.parametrize(
    ("changed", "layout", "replicas"),
    [
        ({}, (2, 1), 4),
        ({"concurrency_or_batch": "3"}, (2, 1), 3),
        ({"model": "gpt-oss-120b"}, (2, 1), 4),
        ({"model": "gpt-oss-120b", "ep": "4"}, (2, 4), 1),
        ({"model": "gpt-oss-120b", "engine": "trtllm"}, (2, 4), 1),
        ({"model": "deepseek-v3", "gpu": "h200", "tp": "1", "dp": "8"}, (1, 8), 1),
        ({"model": "gpt-oss-120b", "tp": "8", "dp": "8"}, (1, 8), 1),
    ],
)
def test_ranks_that_share_no_experts_are_copies_and_share_the_load(
    catalog: Catalog, tmp_path: Path, changed: Mapping[str, str], layout: tuple[int, int], replicas: int
) -> None:
    (one,), _ = read(catalog, tmp_path, {**COPIES, **changed})
    point = one.point
    assert (point.deployment.tp, point.deployment.dp, point.replicas) == (*layout, replicas)
    users = float({**COPIES, **changed}["concurrency_or_batch"])
    assert float(point.offered.concurrency[0, 0]) == users / replicas


def test_copies_do_as_much_as_one_of_them_times_their_number(catalog: Catalog, tmp_path: Path) -> None:
    single = {**ROW, "n_gpus": "2", "tp": "2", "mode": "continuous", "concurrency_or_batch": "8"}
    (alone,), _ = read(catalog, tmp_path, {**single, "output_tok_s": "250"})
    (four,), _ = read(catalog, tmp_path, COPIES)
    assert four.configuration == alone.configuration
    errors = predicted_errors(catalog, [alone, four])
    assert errors.rate[0] == pytest.approx(errors.rate[1])
