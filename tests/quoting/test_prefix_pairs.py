"""Pairs of a cold and a warm prefix cache: what can be run is compared, the rest says why not."""

import csv
from pathlib import Path

import numpy as np
import pytest

from costsvc.db.snapshot import Catalog
from costsvc.ingest.files import catalog_root
from costsvc.quoting.prefix_pairs import PAIRS, PrefixPair, pair_errors, read_pairs

ROW = {
    "source": "made",
    "source_ref": "by hand",
    "model": "llama-3.1-8b",
    "gpu": "h100-sxm",
    "n_gpus": "1",
    "engine": "vllm 0.11.0",
    "hit_rate": "~0.5 (computed)",
    "cached_tokens": "",
    "isl": "4096",
    "osl": "~100",
    "load": "2.5 req/s cold vs 3 req/s warm",
    "ttft_cold_ms": "200",
    "ttft_warm_ms": "150",
    "tok_s_cold": "250",
    "tok_s_warm": "300",
}


def table(folder: Path, *changes: dict[str, str]) -> Path:
    path = folder / PAIRS
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(ROW))
        writer.writeheader()
        writer.writerows({**ROW, **change} for change in changes)
    return path


def pair(catalog: Catalog, folder: Path, **changes: str) -> PrefixPair:
    (found,), left = read_pairs(catalog, table(folder, changes))
    assert not left
    return found


def test_each_half_has_its_load_and_the_warm_one_its_prefix(catalog: Catalog, tmp_path: Path) -> None:
    found = pair(catalog, tmp_path)
    assert (found.cold.offered.rps[0, 0], found.warm.offered.rps[0, 0]) == (2.5, 3.0)
    assert found.cold.traffic.cached_input_tokens == 0
    assert found.warm.traffic.cached_input_tokens == found.warm.traffic.shared_cached_tokens == 2048
    assert found.rate_ratio == pytest.approx(1.2)
    assert found.ttft_ratio == pytest.approx(0.75)


def test_arrivals_that_both_halves_serve_leave_no_error(catalog: Catalog, tmp_path: Path) -> None:
    errors = pair_errors(catalog, [pair(catalog, tmp_path)])
    assert errors.rate == pytest.approx([1.0])
    assert np.all((errors.ttft > 0) & np.isfinite(errors.ttft))


def test_a_burst_waits_for_half_of_itself(catalog: Catalog, tmp_path: Path) -> None:
    found = pair(catalog, tmp_path, load="burst, all prompts at once", hit_rate="1.0")
    assert found.warm.traffic.uncached_input_tokens == 1
    errors = pair_errors(catalog, [found])
    predicted_rate, predicted_ttft = errors.rate[0] * found.rate_ratio, errors.ttft[0] * found.ttft_ratio
    assert predicted_rate > 1
    assert predicted_ttft == pytest.approx(1 / predicted_rate)


def test_users_are_shared_among_replicas(catalog: Catalog, tmp_path: Path) -> None:
    found = pair(catalog, tmp_path, load="800 concurrent over 8 replicas")
    assert found.cold.offered.concurrency[0, 0] == 100


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"hit_rate": "", "cached_tokens": ""}, "The hit rate is not published"),
        ({"load": "production, bursty"}, "no rate and no number in flight"),
        ({"model": "no-such-model"}, "No model 'no-such-model'"),
        ({"osl": ""}, "osl is blank"),
    ],
)
def test_what_cannot_be_run_says_why(
    catalog: Catalog, tmp_path: Path, change: dict[str, str], reason: str
) -> None:
    kept, (left,) = read_pairs(catalog, table(tmp_path, change))
    assert not kept
    assert reason in left.reason


def test_published_pairs_are_met(catalog: Catalog) -> None:
    kept, left = read_pairs(catalog, catalog_root(None) / "measured" / PAIRS)
    assert len(kept) >= 8
    assert len(kept) + len(left) == 22
    errors = pair_errors(catalog, kept)
    assert np.median(np.abs(errors.rate - 1.0)) <= 0.18
    assert np.median(np.abs(errors.ttft - 1.0)) <= 0.25
