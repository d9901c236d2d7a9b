"""Whether an objective that was only assumed makes a quote dear: what a little more time per token would save."""

from dataclasses import replace
from typing import Final

from costsvc.engine.serving import BOUNDS, solution
from costsvc.engine.units import MS_PER_S
from costsvc.quoting.answer.plain import number_exact
from costsvc.quoting.choice import Choice
from costsvc.quoting.scenario import Scenario

SLOWER_RATIO: Final = 1.2
"""How much more time per token is tried. [1]"""

STEEP_SHARE: Final = 0.3
"""What that must save of a request to be worth a warning. [1]"""


def steep_warnings(scenario: Scenario, choice: Choice) -> list[str]:
    """One warning where so little more time saves so much, none otherwise.

    One more evaluation of the chosen layout, and only where `most_saved_share` leaves the possibility.
    """
    is_tpot_bound = BOUNDS[choice.state.bound.item(0)] == "tpot"
    if scenario.objectives_were_asked or not is_tpot_bound:
        return []
    if most_saved_share(choice) < STEEP_SHARE:
        return []
    tpot_s = choice.objectives.tpot_s
    assert tpot_s is not None  # noqa: S101 - it binds
    slower_ms = float(f"{SLOWER_RATIO * tpot_s * MS_PER_S:.2g}")
    slower = replace(choice.objectives, tpot_s=slower_ms / MS_PER_S)
    solved = solution(choice.replica, choice.lengths, slower, scenario.utilization_share)
    saved = 1.0 - number_exact(solved.request_gpu_s) / number_exact(choice.state.request_gpu_s)
    if saved < STEEP_SHARE:
        return []
    return [
        f"The TPOT of {tpot_s * MS_PER_S:.3g} ms, which was only assumed, makes this quote dear: at "
        f"tpot_ms={slower_ms:g} a request would cost about {saved:.0%} less. Give tpot_ms or slo to say what you need."
    ]


def most_saved_share(choice: Choice) -> float:
    r"""An upper bound of what :math:`r` = `SLOWER_RATIO` times the time per token saves of a request. [1]

    Of a step's time :math:`T` prompts take :math:`T - T_{dec}`, which grows with the sequences :math:`B`: with
    :math:`r T` at most :math:`B (1 + (r - 1) T / (T - T_{dec}))` run, and never more than memory and scheduler
    let. Decoding then costs :math:`r B / B'` of what it did, and a prefill pool as much as before.
    """
    state, loop = choice.state, choice.state.loop
    sequences, step_s = number_exact(state.sequences), number_exact(loop.step_s)
    ceiling = min(number_exact(limit) for limit in state.limits.values())
    decode_s = number_exact(loop.decode_step_s) / choice.replica.tokens_per_step
    grown_ratio = ceiling / sequences
    if step_s > decode_s:
        grown_ratio = min(grown_ratio, 1.0 + (SLOWER_RATIO - 1.0) * step_s / (step_s - decode_s))
    request_s = step_s * number_exact(choice.lengths.output) / sequences
    decoding_share = request_s / (request_s + number_exact(loop.prefill_s))
    return decoding_share * (1.0 - SLOWER_RATIO / grown_ratio)
