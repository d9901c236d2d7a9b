"""A request at other contexts: the same output, hits and spread, in one evaluation for all of them."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from costsvc.engine.memory import Lengths
from costsvc.engine.replica import Replica
from costsvc.engine.serving import SteadyState, lengths_of, solve
from costsvc.engine.specs import Objectives
from costsvc.quoting.answer.plain import number_exact
from costsvc.quoting.compiled import every_layout
from costsvc.quoting.evaluate import Evaluated

SHORTEST_PROMPT_TOKENS = 1

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contexts:
    """What a request's layouts do at other contexts. `lengths` are the request's own."""

    replica: Replica
    lengths: Lengths
    objectives: Objectives
    utilization_share: float

    @property
    def shortest_tokens(self) -> int:
        """The output and one prompt token. [token]"""
        return int(np.ceil(number_exact(self.lengths.output))) + SHORTEST_PROMPT_TOKENS

    def lengths_at(self, contexts: Array) -> Lengths:
        """Lengths where the longest request has these contexts; means move in proportion. [token]"""
        output, limit = number_exact(self.lengths.output), number_exact(self.lengths.context_limit)
        longer = (contexts - output) / (limit - output)
        return replace(
            self.lengths,
            uncached=longer * self.lengths.uncached,
            cached=longer * self.lengths.cached,
            shared=longer * self.lengths.shared,
            output=output * np.ones_like(contexts),
            context_limit=contexts,
        )

    def at(self, contexts: Array) -> SteadyState:
        """The steady state of every layout at every context: arrays are (layouts, contexts)."""
        return solve(self.replica, self.lengths_at(contexts), self.objectives, self.utilization_share)


def of_chosen(running: Evaluated) -> Contexts:
    """The chosen layout alone, with the hits that it found."""
    return Contexts(
        replica=running.choice.replica,
        lengths=running.choice.lengths,
        objectives=running.choice.objectives,
        utilization_share=running.scenario.utilization_share,
    )


def of_all(running: Evaluated) -> Contexts:
    """All layouts that the request allows, with the hits of the chosen one."""
    scenario, choice = running.scenario, running.choice
    replica = every_layout(scenario).under(choice.replica.calibration)
    lengths = choice.lengths if scenario.sharing is not None else lengths_of(scenario.traffic)
    return replace(of_chosen(running), replica=replica, lengths=lengths)


def as_quoted(running: Evaluated) -> Contexts:
    """All layouts under the objectives and the step budget that a quote tries first."""
    scenario = running.scenario
    every = of_all(running)
    replica = every.replica.under(scenario.resolved.calibration)
    return replace(every, replica=replica, objectives=scenario.objectives)


def chosen_at(running: Evaluated, contexts: Contexts, ctx: int, layout: int) -> Evaluated:
    """One layout at one context, as if it had been asked for."""
    replica = contexts.replica.only(layout)
    one = replace(contexts, replica=replica)
    places = np.asarray([float(ctx)])
    choice = replace(
        running.choice,
        replica=replica,
        lengths=one.lengths_at(places),
        objectives=one.objectives,
        state=one.at(places),
    )
    return replace(running, choice=choice)
