"""What a workbook evaluates: the quote, its attribution, its savings and its sensitivity."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from costsvc.engine.memory import memory_budget, sequence_bytes
from costsvc.engine.pricing import marginal_rays
from costsvc.errors import InvalidRequest
from costsvc.quoting.answer.plain import number_exact
from costsvc.quoting.audit.attribution import TOKENS, Cell, Tokens, cells_of, ray_points
from costsvc.quoting.audit.live import Live
from costsvc.quoting.audit.points import Point, Sheet, evaluated
from costsvc.quoting.choice import Choice
from costsvc.quoting.scenario import Scenario

MAIN: Final = "the quote"
WITHOUT: Final = "without prefix hits"
EXAMPLE: Final = "example hit rate"
_CONTEXT_RATIOS: Final = (0.25, 0.5, 1.0, 2.0, 4.0)
UTILIZATIONS: Final = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


@dataclass(frozen=True, slots=True)
class Plan:
    """The sheet of points, and how the prices are made of them."""

    sheet: Sheet
    tokens: Tokens
    cells: tuple[Cell, ...]
    contexts: tuple[tuple[str, float], ...]
    """Point → context of the sensitivity table. [token]"""
    example_share: float | None
    is_given: bool
    """Whether concurrency comes from a prefix cache at its equilibrium rather than from the rows."""


def plan_of(scenario: Scenario, choice: Choice, live: Live, example_share: float | None) -> Plan:
    """Choose the points as the engine did, and evaluate them.

    Raises
    ------
    InvalidRequest
        The attribution is not the marginal one, or there is no cache to attribute.
    """
    _refuse(scenario, choice)
    tokens: Tokens = (
        live.uncached_tokens.value,
        live.cached_tokens.value,
        live.output_tokens.value,
    )
    context = live.context_tokens.value
    (ray,) = marginal_rays(choice.replica, [choice.lengths], choice.objectives, scenario.utilization_share)
    cells = cells_of(ray)
    contexts = _contexts(scenario, choice, live)
    points = [
        _main(choice, tokens, context),
        *_savings(tokens, context, example_share),
        *contexts,
        *ray_points(cells, tokens, context),
    ]
    sheet = evaluated(live, choice, scenario.utilization_share, points)
    return Plan(
        sheet=sheet,
        tokens=tokens,
        cells=tuple(cells),
        contexts=tuple((point.label, point.values[0]) for point in contexts),
        example_share=example_share,
        is_given=choice.prefix is not None,
    )


def _refuse(scenario: Scenario, choice: Choice) -> None:
    if scenario.request.attribution != "marginal":
        raise InvalidRequest(
            f"attribution is {scenario.request.attribution}, but the workbook with live formulas shows the "
            f"marginal one. Leave attribution away, or ask for .csv.",
            field="attribution",
        )
    if not choice.deployment.kv_cache:
        raise InvalidRequest(
            "kv_cache=off is a counterfactual without a workbook of live formulas. Ask for .csv.",
            field="kv_cache",
        )
    if choice.deployment.speculation is not None:
        raise InvalidRequest(
            "Speculative decoding has no workbook of live formulas: the draft's step is a second engine. Ask for .csv, "
            "or trace=1 for every intermediate.",
            field="speculation",
        )


def _main(choice: Choice, tokens: Tokens, context: float) -> Point:
    held = number_exact(choice.state.sequences) if choice.prefix is not None else None
    formulas = ("context_tokens", *TOKENS, TOKENS[0])
    return Point(MAIN, formulas, (context, *tokens, tokens[0]), held)


def _savings(tokens: Tokens, context: float, example_share: float | None) -> list[Point]:
    """The same request without hits; with hits where it has none itself."""
    prompt = tokens[0] + tokens[1]
    whole = f"{TOKENS[0]}+{TOKENS[1]}"
    points = [
        Point(
            WITHOUT,
            ("context_tokens", whole, "0", TOKENS[2], whole),
            (context, prompt, 0.0, tokens[2], prompt),
        )
    ]
    if example_share is not None:
        own = f"({whole})*(1-example_hit_rate)"
        left = prompt * (1.0 - example_share)
        formulas = ("context_tokens", own, f"({whole})*example_hit_rate", TOKENS[2], own)
        points.append(Point(EXAMPLE, formulas, (context, left, prompt - left, tokens[2], left)))
    return points


def _contexts(scenario: Scenario, choice: Choice, live: Live) -> list[Point]:
    """The same output after shorter and longer prompts, as far as the model and the memory go."""
    if scenario.sharing is not None or scenario.request.profile is not None:
        return []
    context, output = live.context_tokens.value, live.output_tokens.value
    share = live.cached_tokens.value / (live.uncached_tokens.value + live.cached_tokens.value)
    points = []
    for ratio in _CONTEXT_RATIOS:
        longer = float(round(context * ratio))
        if output < longer <= scenario.model.spec.max_context_tokens and _fits(choice, longer):
            ctx = f"ROUND(context_tokens*{ratio!r},0)"
            own, cached = f"({ctx}-output_tokens)*(1-hit_rate)", f"({ctx}-output_tokens)*hit_rate"
            hits = (longer - output) * share
            values = (longer, longer - output - hits, hits, output, longer - output - hits)
            points.append(Point(f"context x {ratio:g}", (ctx, own, cached, TOKENS[2], own), values))
    return points


def _fits(choice: Choice, context_tokens: float) -> bool:
    held = sequence_bytes(choice.replica, context_tokens) <= memory_budget(choice.replica).kv_bytes
    return bool(np.all(held))
