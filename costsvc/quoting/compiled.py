"""All layouts of a case, as arrays: kept, since requests ask for the same cases at other lengths and prices."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

from costsvc.engine.layouts import Wanted, possible_layouts
from costsvc.engine.replica import Replica, compile_replica
from costsvc.engine.specs import Calibration, Deployment, GpuSpec, ModelSpec
from costsvc.quoting.scenario import Scenario

Fact = TypeVar("Fact")

_KEPT_CASES = 128


@dataclass(frozen=True, slots=True, eq=False)
class _Itself(Generic[Fact]):
    """A fact of the catalog as a key: the very object, which the key keeps alive."""

    fact: Fact

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and other.fact is self.fact

    def __hash__(self) -> int:
        return id(self.fact)


def every_layout(scenario: Scenario, wanted: Wanted | None = None) -> Replica:
    """The layouts that a scenario allows, or all that `wanted` would.

    Raises
    ------
    UnsupportedLayout
        There are none.
    """
    return _kept(
        _Itself(scenario.model.spec),
        _Itself(scenario.gpu.spec),
        _Itself(scenario.resolved.calibration),
        scenario.base,
        scenario.wanted if wanted is None else wanted,
    )


@lru_cache(maxsize=_KEPT_CASES)
def _kept(
    model: _Itself[ModelSpec],
    gpu: _Itself[GpuSpec],
    calibration: _Itself[Calibration],
    base: Deployment,
    wanted: Wanted,
) -> Replica:
    layouts = possible_layouts(model.fact, gpu.fact, calibration.fact, base, wanted)
    return compile_replica(model.fact, gpu.fact, calibration.fact, layouts)
