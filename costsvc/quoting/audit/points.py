"""Which evaluations a quote's prices are made from, and their values and formulas row by row."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from costsvc.engine.serving import solve
from costsvc.quoting.answer.plain import number_exact
from costsvc.quoting.audit.live import Live
from costsvc.quoting.audit.parts import part_values, shared_parts, shortened
from costsvc.quoting.audit.record import Formula, text_of
from costsvc.quoting.audit.rows import Evaluation, ceiling_columns, loop_columns
from costsvc.quoting.choice import Choice

Array = NDArray[np.float64]

SECANT_STEPS: Final = 6
SECOND_GUESS: Final = 0.98
AGREE: Final = 1e-6
"""How near the workbook has to be to the engine, or it is not written. [1]"""

_GIVEN: Final = ("ctx", "uncached", "cached", "output", "shared", "per_prompt")
_REFERENCE: Final = re.compile(r"\[([\w@-]+)\]")


@dataclass(frozen=True, slots=True)
class Point:
    """One request in the chosen deployment: its tokens as formulas over the inputs, and as numbers."""

    label: str
    formulas: tuple[str, str, str, str, str]
    """Context, uncached input, cached input, output, and the uncached tokens that carry a prompt's cost."""
    values: tuple[float, float, float, float, float]
    sequences: float | None = None
    """Where the concurrency is given rather than found: as with a prefix cache at its equilibrium."""


@dataclass(slots=True)
class Sheet:
    """All rows: column names, formulas with `[column]` for a cell of the row, and values."""

    columns: list[str]
    templates: dict[str, str]
    """Formulas that are the same in every row."""
    rows: list[dict[str, Any]] = field(default_factory=list)
    texts: list[dict[str, str]] = field(default_factory=list)
    """Formulas of each row alone."""
    result_row: dict[str, int] = field(default_factory=dict)
    """Point → its row, from 0, whose `cost_gpu_s` is the point's."""


def evaluated(live: Live, choice: Choice, utilization_share: float, points: Sequence[Point]) -> Sheet:
    """Every point, solved and written out.

    Raises
    ------
    ArithmeticError
        A point costs otherwise than the engine says: the loop written out in `rows` is not the engine's.
    """
    templates = _templates(live, choice)
    solver = _Solver(choice, utilization_share, points)
    steps = solver.run()
    parts = _add_parts(templates, steps, solver, live)
    templates = shortened(templates, parts, live.inputs.terms)
    loop_names = [name for name in templates if name not in solver.limits]
    columns = ["point", "iteration", *_GIVEN, *solver.limits, "sequences", *loop_names, "cost_gpu_s"]
    sheet = Sheet(columns, templates)
    for index in range(len(points)):
        _write_point(sheet, index, steps, solver)
    return sheet


def _add_parts(
    templates: Mapping[str, str], steps: list[dict[str, Array]], solver: "_Solver", live: Live
) -> dict[str, str]:
    """Name what several columns need, with its values; what has none in some row stays where it is."""
    terms = live.inputs.terms
    texts = shared_parts(templates, terms)
    found = [part_values(texts, {**solver.given, **solver.limits, **step}, terms) for step in steps]
    finite = [all(np.isfinite(one).all() for one in values) for values in zip(*found, strict=True)]
    kept = [number for number, is_finite in enumerate(finite) if is_finite]
    names = {f"part_{place}": number for place, number in enumerate(kept, start=1)}
    for step, values in zip(steps, found, strict=True):
        step.update({name: values[number] for name, number in names.items()})
    return {name: texts[number] for name, number in names.items()}


def _templates(live: Live, choice: Choice) -> dict[str, str]:
    """The formula of each column, recorded once."""
    terms = live.inputs.terms

    def cell(name: str, value: float) -> Any:
        return Formula(f"[{name}]", value, terms, is_row=True, is_atom=True)

    templates: dict[str, str] = {}

    def put(name: str, value: Any) -> Any:
        templates[name] = text_of(value)
        return cell(name, value.value) if isinstance(value, Formula) else value

    lengths = live.lengths
    uncached, cached, output = (
        one.value for one in (live.uncached_tokens, live.cached_tokens, live.output_tokens)
    )
    shared = number_exact(choice.lengths.shared)
    row = replace(
        lengths,
        uncached=cell("uncached", uncached),
        cached=cell("cached", cached),
        output=cell("output", output),
        shared=cell("shared", shared) if shared else 0.0,
        context_limit=cell("ctx", live.context_tokens.value),
        prompt_unit=cell("per_prompt", uncached),
    )
    at = Evaluation(live.replica, row, live.objectives, live.utilization_share)
    ceiling_columns(at, put)
    loop_columns(at, cell("sequences", number_exact(choice.state.sequences)), put)
    return templates


class _Solver:
    """The numbers of all rows: the engine's functions on arrays of points."""

    def __init__(self, choice: Choice, utilization_share: float, points: Sequence[Point]) -> None:
        self.choice = choice
        self.utilization_share = utilization_share
        self.points = points
        given = np.asarray([point.values for point in points], dtype=np.float64).T
        part = number_exact(choice.lengths.shared) / max(number_exact(choice.lengths.cached), 1e-300)
        self.given = dict(zip(("ctx", "uncached", "cached", "output", "per_prompt"), given, strict=True))
        self.shared_part = part
        self.given["shared"] = self.given["cached"] * part
        self.lengths = replace(
            choice.lengths,
            uncached=self.given["uncached"],
            cached=self.given["cached"],
            output=self.given["output"],
            shared=self.given["shared"],
            context_limit=self.given["ctx"],
            prompt_unit=self.given["per_prompt"],
        )
        self.at = Evaluation(choice.replica, self.lengths, choice.objectives, utilization_share)
        self.has_objective = choice.objectives.tpot_s is not None or choice.objectives.ttft_s is not None
        self.limits: dict[str, Array] = {}
        ceiling_columns(self.at, self._keeper(self.limits))
        self.state = solve(choice.replica, self.lengths, choice.objectives, utilization_share)

    def run(self) -> list[dict[str, Array]]:
        """Columns of each iteration: the ceiling; with objectives also two guesses and secants."""
        ceiling = self.limits["ceiling"]
        steps = [self._loop(ceiling)]
        if self.has_objective:
            least = np.minimum(ceiling, 1.0)
            guess = self._found(ceiling)
            for start in (guess * SECOND_GUESS, guess):
                steps.append(self._loop(np.clip(start, least, ceiling)))
            for _ in range(SECANT_STEPS):
                steps.append(self._loop(np.clip(_secant(steps[-2], steps[-1]), least, ceiling)))
        last = steps[-1]
        met = steps[0]["excess"] <= 0
        last["cost_gpu_s"] = np.where(met, steps[0]["request_gpu_s"], last["request_gpu_s"])
        self._compare(last["cost_gpu_s"])
        return steps

    def _found(self, ceiling: Array) -> Array:
        """The engine's own solution of each point; one sequence where not even that keeps the objectives."""
        found = np.ravel(self.state.sequences)
        return np.where(np.isnan(found), np.minimum(ceiling, 1.0), found)

    def _loop(self, sequences: Array) -> dict[str, Array]:
        given = np.asarray([np.nan if point.sequences is None else point.sequences for point in self.points])
        used = np.where(np.isnan(given), sequences, given)
        columns: dict[str, Array] = {"sequences": used}
        loop_columns(self.at, used, self._keeper(columns))
        return columns

    def _keeper(self, columns: dict[str, Array]) -> Any:
        count = len(self.points)

        def put(name: str, value: Any) -> Any:
            columns[name] = np.broadcast_to(np.asarray(value, dtype=np.float64).reshape(-1), (count,)).copy()
            return columns[name]

        return put

    def _compare(self, cost_gpu_s: Array) -> None:
        """Hold each point against the engine; where no concurrency keeps the objectives it has no answer."""
        engine = np.ravel(self.state.request_gpu_s)
        given = np.asarray([point.sequences is not None for point in self.points])
        engine = np.where(given, number_exact(self.choice.state.request_gpu_s), engine)
        wrong = np.flatnonzero(np.abs(cost_gpu_s / engine - 1.0) > AGREE)
        if len(wrong):
            first = int(wrong[0])
            raise ArithmeticError(
                f"the workbook's {self.points[first].label} costs {cost_gpu_s[first]!r}, the engine's "
                f"{engine[first]!r} accelerator-seconds; {len(wrong)} of {len(engine)} points differ"
            )


def _secant(before: dict[str, Array], now: dict[str, Array]) -> Array:
    step = now["excess"] - before["excess"]
    flat = step == 0
    slope = (now["sequences"] - before["sequences"]) / np.where(flat, 1.0, step)
    return np.where(flat, now["sequences"], now["sequences"] - now["excess"] * slope)


def _write_point(sheet: Sheet, index: int, steps: Sequence[dict[str, Array]], solver: _Solver) -> None:
    """The rows of a point: its iterations, one below the other."""
    point = solver.points[index]
    first = len(sheet.rows)
    count = 1 if point.sequences is not None else len(steps)
    fixed = {name: float(column[index]) for name, column in (*solver.given.items(), *solver.limits.items())}
    lengths = dict(zip(("ctx", "uncached", "cached", "output", "per_prompt"), point.formulas, strict=True))
    lengths["shared"] = f"[cached]*{solver.shared_part!r}" if solver.shared_part else "0"
    names = ("sequences", *(name for name in sheet.templates if name not in fixed))
    for iteration in range(count):
        values: dict[str, Any] = {"point": point.label, "iteration": iteration, **fixed}
        values |= {name: float(steps[iteration][name][index]) for name in names}
        texts = {**lengths, "sequences": _sequences(point, iteration)}
        if iteration == count - 1:
            values["cost_gpu_s"] = float(steps[-1]["cost_gpu_s"][index])
            texts["cost_gpu_s"] = _cost(iteration)
        if count > 1 and iteration in (1, 2):
            share = SECOND_GUESS if iteration == 1 else 1.0
            texts["sequences"] = _guess(share, float(steps[2]["sequences"][index]))
        sheet.rows.append(values)
        sheet.texts.append(texts)
    sheet.result_row[point.label] = first + count - 1


def _sequences(point: Point, iteration: int) -> str:
    if point.sequences is not None:
        return repr(point.sequences)
    if iteration == 0:
        return "[ceiling]"
    return (
        "MEDIAN(MIN(1,[ceiling]),[ceiling],IF([excess@-1]=[excess@-2],[sequences@-1],"
        "[sequences@-1]-[excess@-1]*([sequences@-1]-[sequences@-2])/([excess@-1]-[excess@-2])))"
    )


def _guess(share: float, found: float) -> str:
    return f"MEDIAN(MIN(1,[ceiling]),[ceiling],{share!r}*{found!r})"


def _cost(iterations: int) -> str:
    if not iterations:
        return "[request_gpu_s]"
    return f"IF([excess@-{iterations}]<=0,[request_gpu_s@-{iterations}],[request_gpu_s])"


def in_row(template: str, letters: Mapping[str, str]) -> Callable[[int], str]:
    """A template as a function of the row, counted from 1, that gives its formula; `[name@-2]` is two rows up."""
    pieces = _REFERENCE.split(template)
    # Between pieces of text stand references: their rows, relative to this one, and the text up to the next.
    rows: list[int] = []
    words = [pieces[0]]
    for reference, after in zip(pieces[1::2], pieces[2::2], strict=True):
        name, _, up = reference.partition("@")
        words[-1] += f"${letters[name]}"
        rows.append(int(up or 0))
        words.append(after)
    if not any(rows):
        here = "\0".join(words)
        return lambda row: here.replace("\0", str(row))
    return lambda row: (
        words[0] + "".join(f"{row + up}{after}" for up, after in zip(rows, words[1:], strict=True))
    )
