"""The shipped calibration on the published points: a change of the engine that makes it worse is seen here."""

import numpy as np
import pytest

from costsvc.db.snapshot import Catalog
from costsvc.engine.uncertainty import ErrorBand
from costsvc.ingest.files import catalog_root
from costsvc.quoting.accuracy import band_figure, by_configuration, by_regime, concurrency_stated, figure
from costsvc.quoting.calibrate import Errors, predicted_errors
from costsvc.quoting.case import architecture_of
from costsvc.quoting.measured import read_measurements
from costsvc.quoting.validation import read_held_out
from costsvc.quoting.validation_file import HELD_OUT

ROOT = catalog_root(None)
CORE, MORE = (ROOT / "measured" / f"throughput_{name}.csv" for name in ("core", "more"))


@pytest.fixture(scope="module")
def in_sample(catalog: Catalog) -> Errors:
    return predicted_errors(catalog, read_measurements(catalog, [CORE])[0])


@pytest.fixture(scope="module")
def held_out(catalog: Catalog) -> Errors:
    return read_held_out(ROOT / HELD_OUT, read_measurements(catalog, [CORE, MORE])[0])


# Median |predicted / measured - 1| that the shipped calibration has on `throughput_core.csv`, and a little room.
@pytest.mark.parametrize(("quantity", "at_most"), [("rate", 0.085), ("tpot", 0.085), ("ttft", 0.25)])
def test_the_calibration_is_as_near_as_it_was(in_sample: Errors, quantity: str, at_most: float) -> None:
    found = figure(quantity, "all", getattr(in_sample, quantity))
    assert found is not None
    assert found.points > 400
    assert found.median_error_share <= at_most


def test_predictions_lean_to_neither_side(in_sample: Errors) -> None:
    found = figure("rate", "all", in_sample.rate)
    assert found is not None
    assert abs(found.bias_share) <= 0.03


@pytest.mark.parametrize(("architecture", "at_most"), [("dense", 0.09), ("moe", 0.13)])
def test_new_configurations_are_met_as_well(held_out: Errors, architecture: str, at_most: float) -> None:
    of = [architecture_of(one.point.model.spec) == architecture for one in held_out.measurements]
    found = figure("rate", architecture, held_out.rate[np.asarray(of)])
    assert found is not None
    assert found.points > 300
    assert found.median_error_share <= at_most


def test_no_more_than_a_tenth_of_new_configurations_are_far_off(held_out: Errors) -> None:
    found = figure("rate", "all", held_out.rate)
    assert found is not None
    assert found.median_error_share <= 0.105
    assert found.p90_error_share <= 0.38
    assert abs(found.bias_share) <= 0.025


def test_common_cards_are_met_configuration_by_configuration(held_out: Errors) -> None:
    tables = {one.regime: one for one in by_configuration(held_out)}
    assert tables["throughput_core"].median_error_share <= 0.11
    assert tables["throughput_more"].median_error_share <= 0.165


# Of all tables, where the load is a number in flight: asked are 9 and 30 %.
@pytest.mark.parametrize(("quantity", "points", "at_most"), [("tpot", 900, 0.095), ("ttft", 900, 0.28)])
def test_latencies_are_met_where_users_are_counted(
    held_out: Errors, quantity: str, points: int, at_most: float
) -> None:
    found = figure(quantity, "counted", getattr(held_out, quantity)[concurrency_stated(held_out)])
    assert found is not None
    assert found.points > points
    assert found.median_error_share <= at_most


def test_the_bands_hold_about_four_fifths_and_are_narrow_enough(catalog: Catalog, held_out: Errors) -> None:
    bands = band_figure(held_out, catalog.judgements)
    assert 0.75 <= bands.inside_share <= 0.85
    assert bands.median_half_width_share <= 0.23


def test_two_pools_decode_as_fast_as_they_did(catalog: Catalog) -> None:
    kept, left = read_measurements(catalog, [ROOT / "measured" / "throughput_disagg.csv"])
    assert len(kept) >= 150
    assert all(one.reason for one in left)
    found = figure("TPOT", "disaggregated", predicted_errors(catalog, kept).tpot)
    assert found is not None
    assert found.median_error_share <= 0.15


def test_sheets_that_may_hide_speculation_are_left_out_with_a_reason(catalog: Catalog) -> None:
    _, left = read_measurements(catalog, [ROOT / "measured" / "throughput_disagg.csv"])
    reasons = [one.reason for one in left]
    assert any("no field for speculative decoding" in reason for reason in reasons)
    assert any("unfinished work" in reason for reason in reasons)


def test_no_generation_is_forgotten(in_sample: Errors) -> None:
    figures = {one.regime: one for one in by_regime(in_sample, "generation")}
    assert {"ada", "ampere", "blackwell", "cdna3", "hopper"} <= set(figures)
    assert all(one.median_error_share < 0.2 for one in figures.values())


def test_a_band_multiplies_through() -> None:
    assert ErrorBand(low_ratio=0.5, high_ratio=2.0, points=1).of(3.0) == (1.5, 6.0)
