"""The formulas of the serving loop, each written once, elementwise on numbers, arrays, symbols or cells.

`engine.search` compiles them for single numbers; the audit workbook runs them on its cells.
"""

from typing import Any

import numpy as np


def rows_s(rows: Any, row_s: Any, memory_s: Any, half_rows: Any) -> Any:
    r"""An operator on rows of tokens, :math:`\sqrt{((m + m_{1/2}) t_{row})^2 + t_m^2}`; no rows cost nothing. [s]"""
    return (rows > 0) * np.sqrt(((rows + half_rows) * row_s) ** 2 + memory_s**2)


def units_s(units: Any, once_s: Any, unit_s: Any) -> Any:
    """An operator whose time rises straight with its work; no work costs nothing. [s]"""
    return (units > 0) * (once_s + units * unit_s)


def launched_s(kernels_s: Any, prefill: Any, launches_s: Any, captured_tokens: Any) -> Any:
    """Kernels, under the roof of what the host launches where prompts are more than a captured graph holds. [s]"""
    return np.sqrt(kernels_s**2 + (np.minimum(prefill / captured_tokens, 1.0) * launches_s) ** 2)


def touched_experts(tokens: Any, experts: Any, spread: Any, evenness: Any) -> Any:
    r"""Expected experts that a batch touches, :math:`E (1 - (1 + m s)^{-\kappa})`, s by `parameters.spread_ratio`.

    Experts are not equally sought: their popularity is spread like a gamma variate of shape :math:`\kappa`, which
    turns the exponential of uniform routing, :math:`E (1 - (1 - k/E)^m)`, into that power; the larger, the more
    even. One token touches k.

    References
    ----------
    .. [1] Occupancy of E cells by m draws of k without replacement; Feller, An Introduction to Probability
       Theory, vol. 1, 3rd ed., section IV.2.
    """
    return experts * (1.0 - np.exp(-evenness * np.log1p(tokens * spread)))


def tokens_each(tokens: Any, experts_per_token: Any, touched: Any) -> Any:
    """Tokens that each touched expert sees. [token]"""
    return tokens * experts_per_token / np.maximum(touched, 1.0)


def mixed_prefill_tokens(arriving: Any, uncached: Any, room: Any, dp: Any, gathering: Any) -> Any:
    """Prompt tokens of a step that has some: what a rank and a share of the others take, or all that arrive. [token]"""
    ranks = 1.0 + gathering * (dp - 1.0)
    return np.minimum(np.maximum(arriving, ranks * np.minimum(uncached, room / dp)), room)


def busiest_prefill(prefill: Any, rank_share: Any, dp: Any, prompt: Any) -> Any:
    """Prompt tokens of the rank that has most: a prompt lies whole on one, and the step waits for it. [token]"""
    return np.maximum(prefill * rank_share, np.minimum(prefill, prompt) * (rank_share * dp))


def prompt_load_share(utilization_share: Any, arriving: Any, room: Any, mixed_s: Any, step_s: Any) -> Any:
    """How busy arriving prompts keep the steps: their part of the room, in the time of steps with prompts. [1]"""
    return utilization_share * arriving / room * mixed_s / step_s


def queue_factor(load_share: Any, sequences: Any) -> Any:
    r"""Mean wait of a prompt in service times: M/D/1, :math:`\rho / 2(1 - \rho)`, at most half the loop. [1]

    References
    ----------
    .. [1] Kleinrock, Queueing Systems, vol. 1, 1975, eq. 5.63 (Pollaczek-Khinchin, constant service).
    """
    idle = np.maximum(1.0 - load_share, 1e-9)
    return np.minimum(load_share / (2.0 * idle), sequences / 2.0)
