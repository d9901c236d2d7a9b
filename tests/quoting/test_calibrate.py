"""The fit gives back what made its points, does not depend on their order, and holds configurations out whole."""

from dataclasses import replace
from datetime import date
from itertools import product

import numpy as np
import pytest

from costsvc.db.snapshot import Catalog
from costsvc.engine.calibration import _bounded, fit
from costsvc.engine.loads import serve
from costsvc.engine.serving import lengths_of
from costsvc.ingest.judgements import ScopeKey
from costsvc.ingest.knobs import KnobFields, KnobsFile, KnobWeights
from costsvc.quoting.calibrate import (
    FOLDS,
    HELD_OUT_TOGETHER,
    Fitting,
    calibrate,
    centred,
    errors_of,
    fold_of,
    predicted_errors,
)
from costsvc.quoting.knobs import expand, inherited, judgements_of
from costsvc.quoting.measured import Measurement, grouped
from costsvc.quoting.predict import point_of, replica_of

WEIGHTS = KnobWeights(rate=1.0, tpot=0.4, ttft=0.2, arrivals_tpot=0.2)


def knob(name: str, prior: float, *levels: list[ScopeKey]) -> KnobFields:
    return KnobFields(
        name=name,
        unit="1",
        prior=prior,
        levels=[[], *levels],
        deviations=[1.0] * (1 + len(levels)),
        least_points=1,
    )


def measurements(catalog: Catalog, slower: float) -> list[Measurement]:
    """Points that the catalog's own engine would measure, were every step `slower` times as long."""
    found = []
    places = product(("llama-3-8b", "llama-3-70b"), ("h100-sxm", "b200-sxm"), (4, 32), ("512", "4096"))
    for number, (model, gpu, users, prompt) in enumerate(places):
        row = {
            "model": model,
            "gpu": gpu,
            "n_gpus": "4",
            "engine": "vllm",
            "isl": prompt,
            "osl": "256",
            "concurrency": str(users),
        }
        point = point_of(catalog, row)
        served = serve(replica_of(catalog, point), lengths_of(point.traffic), point.offered)
        found.append(
            Measurement(
                id=f"p{number}",
                source="made",
                point=point,
                output_tokens_per_s=float(served.output_tokens_per_s[0, 0]) / slower,
                ttft_s=float("nan"),
                tpot_s=float(served.tpot_s[0, 0]) * slower,
            )
        )
    return found


def test_a_slowdown_is_found_again(catalog: Catalog) -> None:
    points = measurements(catalog, slower=1.3)
    knobs = KnobsFile(weights=WEIGHTS, centring_configurations=5.0, knobs=[knob("slowdown_ratio", 1.0)])
    fitted = calibrate(catalog, knobs, points, {}, date(2026, 11, 29), "fit")
    before = catalog.judgements.find(
        "slowdown_ratio", {"generation": "hopper", "stack": "vllm", "gpu": "h100-sxm", "dtype": "bf16"}
    ).value
    assert fitted.judgements[0].value == pytest.approx(1.3 * before, rel=0.1)
    assert np.median(np.abs(fitted.held_out.rate - 1.0)) < 0.1


def test_the_order_of_the_rows_does_not_matter(catalog: Catalog) -> None:
    points = measurements(catalog, slower=1.1)
    knobs = KnobsFile(
        weights=WEIGHTS, centring_configurations=5.0, knobs=[knob("slowdown_ratio", 1.0, ["generation"])]
    )
    fits = [
        calibrate(catalog, knobs, order, {}, date(2026, 11, 29), "fit") for order in (points, points[::-1])
    ]
    assert [j.value for j in fits[0].judgements] == pytest.approx([j.value for j in fits[1].judgements])


def test_a_generation_with_measured_kernels_is_tied_to_them(catalog: Catalog) -> None:
    groups = grouped(measurements(catalog, slower=1.0))
    knobs = [knob("link_efficiency_share", 0.4, ["generation"])]
    settings = expand(knobs, groups, {("link_efficiency_share", "hopper", ""): (0.3, 0.1, 100)})
    by_scope = {setting.scope: setting for setting in settings}
    hopper, blackwell = by_scope[("generation", "hopper"),], by_scope[("generation", "blackwell"),]
    assert (hopper.parent, hopper.prior) == (-1, 0.3)
    assert (blackwell.parent, blackwell.prior) == (0, 0.4)


def test_an_accelerator_is_tied_to_its_generation(catalog: Catalog) -> None:
    groups = grouped(measurements(catalog, slower=1.0))
    settings = expand([knob("slowdown_ratio", 1.0, ["generation", "stack"], ["gpu", "stack"])], groups, {})
    for setting in settings[-2:]:
        assert dict(setting.scope)["gpu"] in ("h100-sxm", "b200-sxm")
        above = dict(settings[setting.parent].scope)
        assert above == {
            "generation": catalog.gpu(dict(setting.scope)["gpu"]).spec.generation,
            "stack": "vllm",
        }


def test_a_few_odd_points_do_not_carry_off_a_broad_value(catalog: Catalog) -> None:
    """Most points of a generation rest on their own accelerator; two odd ones do not move what is above it."""
    points = measurements(catalog, slower=1.0)
    odd = [replace(one, output_tokens_per_s=one.output_tokens_per_s / 5.0) for one in points[:2]]
    of = {"gpu": "h100-sxm", "generation": "hopper", "stack": "vllm", "dtype": "bf16"}
    own = catalog.judgements.find("slowdown_ratio", of).value
    tight = knob("slowdown_ratio", own).model_copy(update={"deviations": [0.05]})
    fitting = Fitting(
        catalog, KnobsFile(weights=WEIGHTS, centring_configurations=5.0, knobs=[tight]), grouped(odd), {}
    )
    problem = fitting.problem()
    found = fit(replace(problem, start=problem.prior), 10)
    assert 1.0 < np.exp(found[0]) / own < 1.15


def test_a_stack_that_leans_is_centred_by_as_much_as_its_configurations_say(catalog: Catalog) -> None:
    points = measurements(catalog, slower=1.2)
    knobs = [knob("slowdown_ratio", 1.0, ["generation", "stack"]), knob("pipeline_bubble_share", 0.1)]
    fitting = Fitting(
        catalog, KnobsFile(weights=WEIGHTS, centring_configurations=5.0, knobs=knobs), grouped(points), {}
    )
    before = fitting.problem().prior
    after = centred(fitting, before, 5.0)
    leans = [float(np.median(np.log(errors_of(fitting, values).rate))) for values in (before, after)]
    configurations = len({one.configuration for one in points})
    assert leans[1] == pytest.approx(leans[0] * (1.0 - configurations / (configurations + 5.0)), rel=0.05)
    moved = [setting.scope for setting, step in zip(fitting.settings, after - before, strict=True) if step]
    assert moved == [setting.scope for setting in fitting.settings if ("stack", "vllm") in setting.scope]


def test_a_bound_holds_and_the_others_make_the_best_of_it() -> None:
    normal, target = np.asarray([[2.0, 1.0], [1.0, 2.0]]), np.asarray([3.0, 0.0])
    free = _bounded(normal, target, np.full(2, np.inf))
    assert free == pytest.approx([2.0, -1.0])
    assert _bounded(normal, target, np.asarray([1.0, np.inf])) == pytest.approx([1.0, -0.5])


@pytest.mark.parametrize(("together", "of"), [("model", "model"), ("accelerator", "gpu")])
def test_whole_models_and_cards_can_be_held_out(catalog: Catalog, together: str, of: str) -> None:
    name = HELD_OUT_TOGETHER[together]
    points = measurements(catalog, slower=1.0)
    assert {name(one) for one in points} == {(getattr(one.point, of).id,) for one in points}


def test_a_generation_without_points_takes_after_the_one_whose_kernels_it_runs(catalog: Catalog) -> None:
    knobs = [knob("slowdown_ratio", 1.0, ["generation", "stack"], ["gpu", "stack"])]
    settings = expand(knobs, grouped(measurements(catalog, slower=1.0)), {})
    fitted = judgements_of(settings, np.linspace(0.1, 0.3, len(settings)), date(2026, 11, 29), "fit")
    elder = next(one for one in fitted if ("generation", "blackwell") in one.scope)
    (heir,) = inherited(fitted, {"blackwell-ultra": "blackwell", "hopper": "blackwell", "cdna4": "cdna3"})
    assert heir.scope == (("generation", "blackwell-ultra"), ("stack", "vllm"))
    assert (heir.value, heir.kind, heir.points) == (elder.value, "estimate", None)
    assert "blackwell" in (heir.reason or "")


def test_a_configuration_is_held_out_whole(catalog: Catalog) -> None:
    points = measurements(catalog, slower=1.0)
    folds = {
        one.configuration: {
            fold_of(two.configuration) for two in points if two.configuration == one.configuration
        }
        for one in points
    }
    assert all(len(fold) == 1 for fold in folds.values())
    assert {fold for found in folds.values() for fold in found} <= set(range(FOLDS))


def test_the_catalog_predicts_what_it_made(catalog: Catalog) -> None:
    errors = predicted_errors(catalog, measurements(catalog, slower=1.0))
    assert errors.rate == pytest.approx(np.ones(len(errors.rate)))
    assert errors.tpot == pytest.approx(np.ones(len(errors.tpot)))


def test_a_second_fit_begins_at_the_catalogs_own_values(catalog: Catalog) -> None:
    points = measurements(catalog, slower=1.0)
    knobs = KnobsFile(
        weights=WEIGHTS, centring_configurations=5.0, knobs=[knob("pipeline_bubble_share", 0.9)]
    )
    fitting = Fitting(catalog, knobs, grouped(points), {})
    held = catalog.judgements.find("pipeline_bubble_share", {})
    expected = held.value if held.kind == "measured" else 0.9
    assert np.exp(fitting.problem().start[0]) == pytest.approx(expected)
    assert errors_of(fitting, fitting.problem().start).rate.shape == (len(points),)
