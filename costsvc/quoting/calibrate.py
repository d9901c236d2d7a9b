"""From measured points to judgements: one deterministic fit, and its error on what it has not seen."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from hashlib import blake2b

import numpy as np

from costsvc.db.entries import CatalogContent, Judgement
from costsvc.db.judgements import Judgements, Resolved
from costsvc.db.snapshot import Catalog
from costsvc.engine.calibration import FitGroup, Moved, Problem, Vector, fit, log_errors
from costsvc.engine.replica import Replica, compile_replica
from costsvc.engine.specs import Mode
from costsvc.ingest.knobs import KnobsFile, KnobWeights
from costsvc.quoting.case import architecture_of
from costsvc.quoting.kernel_tables import Priors
from costsvc.quoting.knobs import (
    Setting,
    expand,
    indices_by_judgement,
    inherited,
    judgements_of,
    names,
)
from costsvc.quoting.measured import Measurement, PointGroup, grouped
from costsvc.quoting.perturbed import with_steps

ITERATIONS = 12
FOLDS = 5
PROCESSES = 2
CONFIGURATION_EXPONENT = 0.35
CENTRED = "slowdown_ratio"
HELD_OUT_TOGETHER: Mapping[str, Callable[[Measurement], tuple[str, ...]]] = {
    "configuration": lambda one: one.configuration,
    "model": lambda one: (one.point.model.id,),
    "accelerator": lambda one: (one.point.gpu.id,),
}
"""What a fit for held-out errors does not see at all of what it then predicts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Predicted over measured of each measurement; NaN where it was not measured. [1]"""

    measurements: tuple[Measurement, ...]
    rate: Vector
    tpot: Vector
    ttft: Vector

    def of_mode(self, mode: Mode) -> "Errors":
        """Those of co-located or of disaggregated deployments."""
        of = np.asarray([one.point.deployment.mode == mode for one in self.measurements], dtype=bool)
        return Errors(
            measurements=tuple(one for one, is_of in zip(self.measurements, of, strict=True) if is_of),
            rate=self.rate[of],
            tpot=self.tpot[of],
            ttft=self.ttft[of],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """Fitted judgements, with the errors on the points they saw and on points held out."""

    settings: tuple[Setting, ...]
    values: Vector
    judgements: tuple[Judgement, ...]
    in_sample: Errors
    held_out: Errors


class Fitting:
    """Measured groups against a catalog, with some judgements free."""

    def __init__(
        self, catalog: Catalog, knobs: KnobsFile, groups: Sequence[PointGroup], priors: Priors
    ) -> None:
        self.catalog = catalog
        self.knobs = knobs
        self.groups = tuple(groups)
        self.settings = tuple(expand(knobs.knobs, groups, priors))
        self._fixed = [j for j in catalog.content.judgements if j.name not in names(self.settings)]
        self._index = indices_by_judgement(self.settings)
        self._compiled = [_compiled(catalog, group) for group in groups]

    def problem(self) -> Problem:
        """The least-squares problem over all groups, beginning at the catalog's own values."""
        settings = self.settings
        prior = np.log([setting.prior for setting in settings])
        upper = np.log([setting.knob.at_most or np.inf for setting in settings])
        return Problem(
            groups=[_fit_group(group, self._sizes(), self.knobs.weights) for group in self.groups],
            layouts=self.layouts,
            moved=self.moved,
            start=np.minimum(self._current(prior), upper),
            upper=upper,
            parent=np.asarray([setting.parent for setting in settings]),
            prior=prior,
            deviation=np.asarray([setting.deviation for setting in settings]),
            weights=self.knobs.weights.spec(),
        )

    def layouts(self, values: Vector) -> list[Replica]:
        """Each group's layout under some values."""
        resolved = self._resolved(values)
        return [
            replace(layout, calibration=one.calibration)
            for layout, one in zip(self._compiled, resolved, strict=True)
        ]

    def moved(self, values: Vector, step: float) -> list[Moved]:
        """The same with a step of each value that the group uses, as arrays."""
        found = []
        for layout, one in zip(self._compiled, self._resolved(values), strict=True):
            places: dict[int, list[Judgement]] = {}
            for judgement in one.used:
                index = self._index.get((judgement.name, judgement.scope))
                if index is not None:
                    places.setdefault(index, []).append(judgement)
            calibration = with_steps(one.calibration, list(places.values()), step)
            found.append(
                Moved(replica=replace(layout, calibration=calibration), columns=np.asarray(list(places)))
            )
        return found

    def _resolved(self, values: Vector) -> list[Resolved]:
        table = Judgements([*self._fixed, *judgements_of(self.settings, values, date.min, "")])
        return [_calibration_of(table, group) for group in self.groups]

    def _current(self, prior: Vector) -> Vector:
        """The catalog's own values where it has the setting, so that a second fit goes on from the first."""
        held = {(j.name, j.scope): j.value for j in self.catalog.content.judgements if j.kind == "measured"}
        start = prior.copy()
        for place, index in self._index.items():
            if place in held:
                start[index] = np.log(held[place])
        return np.asarray(start)

    def _sizes(self) -> Mapping[tuple[str, ...], int]:
        sizes: dict[tuple[str, ...], int] = {}
        for group in self.groups:
            key = group.measurements[0].configuration
            sizes[key] = sizes.get(key, 0) + len(group.measurements)
        return sizes


def calibrate(
    catalog: Catalog,
    knobs: KnobsFile,
    measurements: Sequence[Measurement],
    priors: Priors,
    dated: date,
    source_id: str,
    progress: Callable[[], None] = lambda: None,
    *,
    together: str = "configuration",
) -> Fitted:
    """Fit on all points; then, for the error on unseen ones, on four fifths of the configurations at a time.

    Folds are of whole configurations and follow from their names alone, so the result does not depend on
    the order of the rows.

    Parameters
    ----------
    together : str
        What folds are of, one of `HELD_OUT_TOGETHER`.
    """
    groups = grouped(measurements)
    fitting = Fitting(catalog, knobs, groups, priors)
    values = fit(fitting.problem(), ITERATIONS, progress)
    values = centred(fitting, values, knobs.centring_configurations)
    held_out = _held_out(catalog, knobs, measurements, priors, progress, together)
    judgements = judgements_of(fitting.settings, values, dated, source_id)
    return Fitted(
        settings=fitting.settings,
        values=values,
        judgements=(*judgements, *inherited(judgements, knobs.kin)),
        in_sample=errors_of(fitting, values),
        held_out=_joined([fold for fold in held_out if fold.measurements]),
    )


def errors_of(fitting: Fitting, values: Vector) -> Errors:
    """Errors of all points of a fitting under some values."""
    pairs = zip(fitting.groups, fitting.layouts(values), strict=True)
    return _errors(fitting.groups, [log_errors(_fit_group(group, {}), layout) for group, layout in pairs])


def centred(fitting: Fitting, values: Vector, half_configurations: float) -> Vector:
    r"""Values under which the rates of a stack lean to neither side in the median; with pools, TPOT's inverse.

    Points that are far off lie to one side and pull a fit with them, little as each may pull. A stack's slowness
    takes :math:`n / (n + n_{1/2})` of its median error, with n configurations that say so.
    """
    errors = errors_of(fitting, values)
    pooled = [one.point.deployment.mode == "disaggregated" for one in errors.measurements]
    rates = np.where(pooled, 1.0 / errors.tpot, errors.rate)
    known = np.isfinite(rates)
    stacks = np.asarray([one.point.stack.id for one in errors.measurements])
    leans: dict[str, float] = {}
    for stack in sorted(set(stacks[known])):
        of = known & (stacks == stack)
        configurations = {
            one.configuration for one, is_of in zip(errors.measurements, of, strict=True) if is_of
        }
        share = len(configurations) / (len(configurations) + half_configurations)
        leans[stack] = share * float(np.median(np.log(rates[of])))
    moves = [
        leans.get(dict(setting.scope).get("stack", ""), 0.0) if setting.knob.name == CENTRED else 0.0
        for setting in fitting.settings
    ]
    return np.asarray(values + np.asarray(moves))


def predicted_errors(catalog: Catalog, measurements: Sequence[Measurement]) -> Errors:
    """Errors of the catalog's own judgements."""
    groups = grouped(measurements)
    replicas = [_compiled(catalog, group) for group in groups]
    found = [log_errors(_fit_group(g, {}), r) for g, r in zip(groups, replicas, strict=True)]
    return _errors(groups, found)


def fold_of(name: tuple[str, ...]) -> int:
    """Which fold a configuration, a model or an accelerator is held out in."""
    return blake2b("|".join(name).encode(), digest_size=4).digest()[0] % FOLDS


def _held_out(
    catalog: Catalog,
    knobs: KnobsFile,
    measurements: Sequence[Measurement],
    priors: Priors,
    progress: Callable[[], None],
    together: str,
) -> list[Errors]:
    """All folds, each in a process of its own; their order and so the result is fixed."""
    folds = sorted({fold_of(HELD_OUT_TOGETHER[together](one)) for one in measurements})
    found = []
    with ProcessPoolExecutor(PROCESSES) as pool:
        work = partial(_errors_of_fold, catalog.content, knobs, measurements, priors, together)
        for errors in pool.map(work, folds):
            found.append(errors)
            progress()
    return found


def _errors_of_fold(
    content: CatalogContent,
    knobs: KnobsFile,
    measurements: Sequence[Measurement],
    priors: Priors,
    together: str,
    fold: int,
) -> Errors:
    """Fit without a fold, from the priors alone so that nothing of it is known, and predict the fold."""
    catalog = Catalog(content, revision=None)
    name = HELD_OUT_TOGETHER[together]
    seen = [one for one in measurements if fold_of(name(one)) != fold]
    unseen = grouped(one for one in measurements if fold_of(name(one)) == fold)
    fitting = Fitting(catalog, knobs, grouped(seen), priors)
    problem = fitting.problem()
    start = np.minimum(problem.prior, problem.upper)
    fitted = fit(replace(problem, start=start), ITERATIONS)
    fitted = centred(fitting, fitted, knobs.centring_configurations)
    table = judgements_of(fitting.settings, fitted, date.min, "")
    replicas = _replicas_under(catalog, fitting, table, unseen)
    return _errors(unseen, [log_errors(_fit_group(g, {}), r) for g, r in zip(unseen, replicas, strict=True)])


def _replicas_under(
    catalog: Catalog, fitting: Fitting, judgements: Sequence[Judgement], groups: Sequence[PointGroup]
) -> list[Replica]:
    free = names(fitting.settings)
    fixed = [j for j in catalog.content.judgements if j.name not in free]
    table = Judgements([*fixed, *judgements])
    return [_compiled(catalog, group, table) for group in groups]


def _compiled(catalog: Catalog, group: PointGroup, table: Judgements | None = None) -> Replica:
    point = group.point
    resolved = _calibration_of(table or catalog.judgements, group)
    return compile_replica(point.model.spec, point.gpu.spec, resolved.calibration, [point.deployment])


def _calibration_of(table: Judgements, group: PointGroup) -> Resolved:
    point = group.point
    layout = point.deployment
    return table.calibration(
        point.gpu.spec, point.stack, architecture_of(point.model.spec), layout.weights, layout.kv
    )


def _fit_group(
    group: PointGroup, sizes: Mapping[tuple[str, ...], int], weights: KnobWeights | None = None
) -> FitGroup:
    """Weights fall with the size of a configuration, so that no sweep outvotes all others.

    Servers are told their rate, and their first tokens wait in a queue that the table does not describe, like
    those of floods, whose number in flight is what ran and not what was sent; what runs at once hangs on how
    arrivals clump, so their TPOT says less of a step than a closed loop's. With pools prompts wait for prefill
    workers of another layout, and TPOT counts as a rate does elsewhere.
    """
    size = sizes.get(group.measurements[0].configuration, 1)
    server, pooled = group.offered.mode == "server", group.point.deployment.mode == "disaggregated"
    queued = server or pooled or group.offered.mode == "offline-maxthroughput"
    say = 1.0
    if weights and (pooled or server):
        say = (weights.rate if pooled else weights.arrivals_tpot) / weights.tpot
    nothing = np.full_like(group.tpot_s, np.nan)
    return FitGroup(
        lengths=group.lengths,
        offered=group.offered,
        output_tokens_per_s=nothing if server else group.output_tokens_per_s,
        ttft_s=nothing if queued else group.ttft_s,
        tpot_s=group.tpot_s,
        weight=np.full_like(group.tpot_s, say * size**-CONFIGURATION_EXPONENT),
    )


def _errors(groups: Sequence[PointGroup], logs: Sequence[tuple[Vector, Vector, Vector]]) -> Errors:
    def joined(which: int) -> Vector:
        return np.asarray(np.exp(np.concatenate([np.ravel(log[which]) for log in logs])))

    return Errors(
        measurements=tuple(one for group in groups for one in group.measurements),
        rate=joined(0),
        tpot=joined(1),
        ttft=joined(2),
    )


def _joined(parts: Sequence[Errors]) -> Errors:
    return Errors(
        measurements=tuple(one for part in parts for one in part.measurements),
        rate=np.concatenate([part.rate for part in parts]),
        tpot=np.concatenate([part.tpot for part in parts]),
        ttft=np.concatenate([part.ttft for part in parts]),
    )
