"""The cheapest feasible deployment, or the reason why there is none and what would help."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from costsvc.engine.layouts import Wanted
from costsvc.engine.loop import run_loop
from costsvc.engine.memory import Lengths, longest_context_tokens, memory_budget, sequence_bytes
from costsvc.engine.prefix import PrefixState, meet, prefix_state
from costsvc.engine.replica import Replica
from costsvc.engine.serving import Solution, SteadyState, lengths_of, solution, solve_together
from costsvc.engine.sharing import compile_sharing
from costsvc.engine.specs import Deployment, Objectives
from costsvc.engine.units import GIGA, MS_PER_S
from costsvc.errors import DoesNotFit, SloUnreachable
from costsvc.quoting.compiled import every_layout
from costsvc.quoting.scenario import Scenario

PREFIX_FINALISTS = 3
RELAXED_BY = 1e-6
SMALLEST_STEP_TOKENS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One layout, solved. `feasible` of `considered` layouts were."""

    replica: Replica
    lengths: Lengths
    objectives: Objectives
    state: SteadyState
    prefix: PrefixState | None
    considered: int
    feasible: int
    warnings: tuple[str, ...]

    @property
    def deployment(self) -> Deployment:
        """The layout."""
        return self.replica.deployments[0]


def choose(scenario: Scenario) -> Choice:
    """Search all possible layouts for the least accelerator-seconds per request.

    Raises
    ------
    UnsupportedLayout, DoesNotFit, SloUnreachable
        No layout divides the model, holds one sequence, or meets the objectives.
    """
    lengths = lengths_of(scenario.traffic)
    every = every_layout(scenario)
    solved = solution(every, lengths, scenario.objectives, scenario.utilization_share)
    objectives, warnings = scenario.objectives, list[str]()
    if not solved.meets.any():
        fits = solved.fits[:, 0]
        if not fits.any():
            raise does_not_fit(scenario, every)
        every, solved = _smaller_steps(scenario, every, lengths)
        warnings.append(_step_warning(every))
        if not solved.meets.any():
            every = every_layout(scenario)
            objectives, warnings = _relaxed(scenario, every, lengths, fits)
            solved = solution(every, lengths, objectives, scenario.utilization_share)
    if scenario.sharing is None:
        return _cheapest(every, lengths, objectives, solved, tuple(warnings))
    order, feasible = _order(solved)
    finalists = order[: min(feasible, PREFIX_FINALISTS)]
    replica, prefix = _with_prefixes(scenario, every, finalists, lengths, objectives, solved)
    return Choice(
        replica=replica,
        lengths=prefix.lengths,
        objectives=objectives,
        state=prefix.state,
        prefix=prefix,
        considered=len(every.deployments),
        feasible=feasible,
        warnings=tuple(warnings),
    )


def choose_alike(scenarios: Sequence[Scenario]) -> list[Choice | None]:
    """The choices of scenarios that differ in their mean lengths alone, in one evaluation.

    None where the first search does not end it: `choose` then says what is in the way, or gives way.
    """
    first = scenarios[0]
    every = every_layout(first)
    lengths = [lengths_of(scenario.traffic) for scenario in scenarios]
    solved, places = solve_together(every, lengths, first.objectives, first.utilization_share)
    parts = (solved.some(slice(None), place) for place in places)
    return [
        _cheapest(every, one, first.objectives, part) if part.meets.any() else None
        for one, part in zip(lengths, parts, strict=True)
    ]


def _cheapest(
    every: Replica,
    lengths: Lengths,
    objectives: Objectives,
    solved: Solution,
    warnings: tuple[str, ...] = (),
) -> Choice:
    order, feasible = _order(solved)
    return Choice(
        replica=every.only(order[0]),
        lengths=lengths,
        objectives=objectives,
        state=solved.some(slice(order[0], order[0] + 1), slice(None)).state(),
        prefix=None,
        considered=len(every.deployments),
        feasible=feasible,
        warnings=warnings,
    )


def _order(solved: Solution) -> tuple[list[int], int]:
    """Layouts by what a request takes of the accelerators, the least first, and how many are feasible."""
    order = np.argsort(solved.request_gpu_s[:, 0], kind="stable").tolist()
    return order, int(np.count_nonzero(solved.meets[:, 0]))


def smaller_steps(every: Replica) -> Iterator[Replica]:
    """The layouts with the token budget of a step halved again and again, as an operator would."""
    tokens = every.calibration.step_token_budget_tokens
    while True:
        tokens /= 2
        yield replace(every, calibration=replace(every.calibration, step_token_budget_tokens=tokens))
        if tokens / 2 < SMALLEST_STEP_TOKENS:
            return


def _smaller_steps(scenario: Scenario, every: Replica, lengths: Lengths) -> tuple[Replica, Solution]:
    """The largest of these budgets at which some layout meets the objectives; else the smallest."""
    *larger, smallest = smaller_steps(every)
    for smaller in larger:
        solved = solution(smaller, lengths, scenario.objectives, scenario.utilization_share)
        if solved.meets.any():
            return smaller, solved
    return smallest, solution(smallest, lengths, scenario.objectives, scenario.utilization_share)


def _step_warning(every: Replica) -> str:
    tokens = every.calibration.step_token_budget_tokens
    return (
        f"With the assumed token budget of a step no layout meets the objective; this quote is for "
        f"max_num_batched_tokens={tokens:.0f}, the largest half that does."
    )


def _with_prefixes(
    scenario: Scenario,
    every: Replica,
    finalists: list[int],
    lengths: Lengths,
    objectives: Objectives,
    solved: Solution,
) -> tuple[Replica, PrefixState]:
    """The finalist that is cheapest with its prefix cache."""
    assert scenario.sharing is not None  # noqa: S101 - only a profile that shares gets here
    utilization, tiers = scenario.utilization_share, scenario.load.tiers
    prompt, output = scenario.traffic.input_tokens, scenario.traffic.output_tokens
    sharing = compile_sharing(scenario.sharing, prompt, output)
    together = every.some(finalists)
    first = solved.some(finalists, slice(None))
    met = meet(together, lengths, objectives, first, utilization, sharing, tiers=tiers)
    best = int(np.argmin(np.nan_to_num(met.request_gpu_s[:, 0], nan=np.inf)))
    replica = every.only(finalists[best])
    prefix = prefix_state(
        replica, lengths, objectives, utilization, sharing, meeting=met.of(best), tiers=tiers
    )
    return replica, prefix


def _relaxed(
    scenario: Scenario, every: Replica, lengths: Lengths, fits: np.ndarray
) -> tuple[Objectives, list[str]]:
    """The nearest objective that some layout reaches, where it was only assumed."""
    alone = run_loop(
        every, lengths, np.minimum(1.0, solve_ceiling(every, lengths)), scenario.utilization_share
    )
    fastest_s = float(np.nanmin(np.where(fits[:, None], alone.step_s, np.nan)))
    soonest_s = float(np.nanmin(np.where(fits[:, None], alone.ttft_s, np.nan)))
    if scenario.objectives_were_asked:
        raise _unreachable(scenario, fastest_s, soonest_s)
    assert scenario.objectives.tpot_s is not None  # noqa: S101 - only an assumed objective gets here
    relaxed_s = fastest_s * (1 + RELAXED_BY)
    warning = (
        f"No layout reaches the assumed TPOT of {scenario.objectives.tpot_s * MS_PER_S:g} ms; this quote is for "
        f"{relaxed_s * MS_PER_S:.1f} ms, the nearest that one reaches. Give tpot_ms or slo to say what you need."
    )
    return replace(scenario.objectives, tpot_s=relaxed_s), [warning]


def solve_ceiling(replica: Replica, lengths: Lengths) -> np.ndarray:
    """Concurrency without objectives, per layout. [sequences]"""
    return solution(replica, lengths, Objectives(), 1.0).sequences


def _unreachable(scenario: Scenario, fastest_s: float, soonest_s: float) -> SloUnreachable:
    tpot, ttft = scenario.objectives.tpot_s, scenario.objectives.ttft_s
    asked = " and ".join(
        f"{name} <= {limit * MS_PER_S:g} ms"
        for name, limit in (("TPOT", tpot), ("TTFT", ttft))
        if limit is not None
    )
    return SloUnreachable(
        f"No layout of {scenario.model.name} on {scenario.gpu.name} meets {asked}, even with one sequence: the "
        f"fastest gives a TPOT of {fastest_s * MS_PER_S:.1f} ms, the soonest a TTFT of {soonest_s * MS_PER_S:.0f} ms. "
        f"Relax the objective, shorten the prompt, lower the weights dtype or choose a faster GPU.",
        field="tpot_ms" if tpot is not None and fastest_s > tpot else "ttft_ms",
        details={"fastest_tpot_ms": fastest_s * MS_PER_S, "soonest_ttft_ms": soonest_s * MS_PER_S},
    )


def does_not_fit(scenario: Scenario, every: Replica) -> DoesNotFit:
    """What is needed, what is there, and what would fit."""
    budget = memory_budget(every)
    context = scenario.traffic.context_limit_tokens
    one = np.asarray(sequence_bytes(every, context))[:, 0]
    short = one - budget.kv_bytes[:, 0]
    nearest = int(np.argmin(short))
    layout = every.deployments[nearest]
    usable = float(budget.usable_bytes[nearest, 0])
    needed = usable - float(budget.kv_bytes[nearest, 0]) + float(one[nearest])
    longest = int(longest_context_tokens(every, budget)[nearest, 0])
    ways = _ways_out(scenario, longest)
    where = f"on each of {layout.gpus}" if layout.gpus > 1 else "on one"
    return DoesNotFit(
        f"{scenario.model.name} with {context:,.0f} tokens of context needs {needed / GIGA:.1f} GB {where} "
        f"{scenario.gpu.name} (tp={layout.tp}, pp={layout.pp}, dp={layout.dp}): weights "
        f"{float(budget.weight_bytes[nearest, 0]) / GIGA:.1f} GB and {float(one[nearest]) / GIGA:.1f} GB of KV cache "
        f"beside what the engine takes; {usable / GIGA:.1f} GB are there. {' '.join(ways)}",
        field="gpus" if scenario.request.gpus else "gpu",
        details={
            "needed_bytes_per_gpu": needed,
            "available_bytes_per_gpu": usable,
            "longest_context_tokens": longest,
            "gpus": layout.gpus,
        },
    )


def _ways_out(scenario: Scenario, longest: int) -> list[str]:
    ways = []
    if scenario.wanted != Wanted():
        every = every_layout(scenario, Wanted())
        needed = sequence_bytes(every, scenario.traffic.context_limit_tokens)
        room = np.asarray(needed <= memory_budget(every).kv_bytes)
        enough = [d.gpus for d, fit in zip(every.deployments, room[:, 0], strict=True) if fit]
        if enough:
            ways.append(f"It fits on gpus={min(enough)}.")
    if longest > 1:
        of_profile = scenario.request.profile is not None
        context = f"of a profile's requests is {longest:,} tokens" if of_profile else f"is ctx={longest}"
        ways.append(f"With this layout the longest context {context}.")
    ways.append("Or lower the weights or kv dtype, or choose a GPU with more memory.")
    return ways
