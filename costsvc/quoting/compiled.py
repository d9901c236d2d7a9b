"""All layouts of a case, as arrays: kept, since requests ask for the same cases at other lengths and prices."""

from functools import lru_cache

from costsvc.engine.layouts import Wanted, possible_layouts
from costsvc.engine.replica import Replica, compile_replica
from costsvc.engine.specs import Calibration, Deployment, GpuSpec, ModelSpec
from costsvc.quoting.kept import Itself
from costsvc.quoting.scenario import Scenario

_KEPT_CASES = 128


def every_layout(scenario: Scenario, wanted: Wanted | None = None) -> Replica:
    """The layouts that a scenario allows, or all that `wanted` would.

    Raises
    ------
    UnsupportedLayout
        There are none.
    """
    return _kept(
        Itself(scenario.model.spec),
        Itself(scenario.gpu.spec),
        Itself(scenario.resolved.calibration),
        scenario.base,
        scenario.wanted if wanted is None else wanted,
    )


def one_layout(model: ModelSpec, gpu: GpuSpec, calibration: Calibration, deployment: Deployment) -> Replica:
    """A single layout, whether or not a search would look at it."""
    return _kept_one(Itself(model), Itself(gpu), Itself(calibration), deployment)


@lru_cache(maxsize=_KEPT_CASES)
def _kept_one(
    model: Itself[ModelSpec], gpu: Itself[GpuSpec], calibration: Itself[Calibration], deployment: Deployment
) -> Replica:
    return compile_replica(model.fact, gpu.fact, calibration.fact, [deployment])


@lru_cache(maxsize=_KEPT_CASES)
def _kept(
    model: Itself[ModelSpec],
    gpu: Itself[GpuSpec],
    calibration: Itself[Calibration],
    base: Deployment,
    wanted: Wanted,
) -> Replica:
    layouts = possible_layouts(model.fact, gpu.fact, calibration.fact, base, wanted)
    return compile_replica(model.fact, gpu.fact, calibration.fact, layouts)
