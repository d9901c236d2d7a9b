"""What a calibration may move: knobs, expanded to the scopes that have points enough, and back to judgements."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

import numpy as np

from costsvc.db.entries import Judgement
from costsvc.engine.calibration import Vector
from costsvc.ingest.knobs import KnobFields
from costsvc.quoting.case import architecture_of
from costsvc.quoting.kernel_tables import Priors
from costsvc.quoting.measured import PointGroup

Scope = tuple[tuple[str, str], ...]
ESTIMATED_BELOW = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One value to fit: a knob in one scope. `parent` is the setting it is tied to, -1 its own prior."""

    knob: KnobFields
    scope: Scope
    level: int
    parent: int
    prior: float
    points: int

    @property
    def deviation(self) -> float:
        """How far the logarithm may lie from the parent's. [1]"""
        return self.knob.deviations[self.level]


def scope_of(group: PointGroup) -> dict[str, str]:
    """Where a group of points lies, for judgements; `dtype` is its weight plan."""
    point = group.point
    return {
        "gpu": point.gpu.id,
        "generation": point.gpu.spec.generation,
        "stack": point.stack.id,
        "architecture": architecture_of(point.model.spec),
        "dtype": point.deployment.weights.id,
    }


def expand(knobs: Sequence[KnobFields], groups: Sequence[PointGroup], priors: Priors) -> list[Setting]:
    """Every scope of every level that has `least_points` points; broad ones first.

    A generation whose kernels were measured is tied to those, not to the other generations; an accelerator lies
    in its generation, so what is measured of the one says something of the other.
    """
    settings: list[Setting] = []
    generations = {group.point.gpu.id: group.point.gpu.spec.generation for group in groups}
    for knob in knobs:
        places: dict[Scope, int] = {}
        for level, keys in enumerate(knob.levels):
            for scope, points in _populated(knob, keys, groups).items():
                prior = _kernel_prior(knob, scope, priors)
                inside = set(scope) | {("generation", generations[id]) for key, id in scope if key == "gpu"}
                around = [
                    (settings[index].level, index)
                    for at, index in places.items()
                    if settings[index].level < level and set(at) <= inside
                ]
                parent = -1 if prior is not None else max(around, default=(-1, -1))[1]
                places[scope] = len(settings)
                settings.append(
                    Setting(
                        knob=knob,
                        scope=scope,
                        level=level,
                        parent=parent,
                        prior=knob.prior if prior is None else prior,
                        points=points,
                    )
                )
    return settings


def _kernel_prior(knob: KnobFields, scope: Scope, priors: Priors) -> float | None:
    if len(scope) != 1 or scope[0][0] != "generation":
        return None
    generation = scope[0][1]
    for dtype in knob.dtypes or ["", "bf16"]:
        found = priors.get((knob.name, generation, dtype))
        if found is not None:
            return max(found[0], knob.at_least)
    return None


def _populated(knob: KnobFields, keys: Sequence[str], groups: Sequence[PointGroup]) -> dict[Scope, int]:
    counts: Counter[Scope] = Counter()
    for group in groups:
        if not knob.concerns(group.point.deployment):
            continue
        where = scope_of(group)
        counts[tuple((key, where[key]) for key in keys)] += len(group.measurements)
    if not keys:
        return {(): counts[()]}
    return {scope: points for scope, points in sorted(counts.items()) if points >= knob.least_points}


def judgements_of(
    settings: Sequence[Setting], values: Vector, dated: date, source_id: str
) -> list[Judgement]:
    """The judgements that fitted values stand for, one for each dtype of a knob."""
    found = []
    for setting, value in zip(settings, np.exp(values), strict=True):
        measured = setting.points >= ESTIMATED_BELOW
        plain = Judgement(
            name=setting.knob.name,
            value=float(value),
            unit=setting.knob.unit,
            kind="measured" if measured else "estimate",
            dated=dated,
            source_id=source_id,
            scope=setting.scope,
            points=setting.points or None,
            reason=None if measured else "No measured point concerns it: the prior of the fit",
        )
        dtypes: Sequence[str | None] = setting.knob.dtypes or (None,)
        for dtype in dtypes:
            scope = setting.scope if dtype is None else (*setting.scope, ("dtype", dtype))
            found.append(replace(plain, scope=tuple(sorted(scope))))
    return found


def inherited(judgements: Iterable[Judgement], kin: Mapping[str, str]) -> list[Judgement]:
    """What generations without a point take from the one whose kernels they run.

    Parameters
    ----------
    kin : mapping
        Generation to the generation that it takes after.
    """
    fitted = list(judgements)
    found = [
        replace(
            one,
            scope=tuple(sorted((dict(one.scope) | {"generation": younger}).items())),
            kind="estimate",
            points=None,
            reason=f"Nothing was measured of this generation: what was fitted for {elder}, whose kernels it runs",
        )
        for younger, elder in sorted(kin.items())
        for one in fitted
        if ("generation", elder) in one.scope and "gpu" not in dict(one.scope)
    ]
    places = {(one.name, one.scope) for one in fitted}
    return [one for one in found if (one.name, one.scope) not in places]


def indices_by_judgement(settings: Sequence[Setting]) -> Mapping[tuple[str, Scope], int]:
    """Which setting a judgement's name and scope belong to."""
    found: dict[tuple[str, Scope], int] = {}
    for index, setting in enumerate(settings):
        for dtype in setting.knob.dtypes or (None,):
            scope = setting.scope if dtype is None else (*setting.scope, ("dtype", dtype))
            found[setting.knob.name, tuple(sorted(scope))] = index
    return found


def names(settings: Iterable[Setting]) -> frozenset[str]:
    """Names of the judgements that a fit replaces."""
    return frozenset(setting.knob.name for setting in settings)
