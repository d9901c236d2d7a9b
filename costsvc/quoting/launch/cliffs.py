"""Contexts at which something gives way, each exact to one token."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from costsvc.db.entries import ApiPrice
from costsvc.db.prices import contexts_taken, of_one_tier, prompts_of_tiers
from costsvc.db.snapshot import Catalog
from costsvc.engine.memory import sequence_bytes
from costsvc.engine.serving import BOUNDS
from costsvc.engine.thresholds import first_tokens
from costsvc.engine.units import TOKENS_PER_MTOK
from costsvc.quoting.answer.plain import Section, number
from costsvc.quoting.choice import smaller_steps
from costsvc.quoting.contexts import Array, Contexts, of_all, of_chosen
from costsvc.quoting.evaluate import Evaluated
from costsvc.quoting.launch.offers import offers_for, usd_of_offer
from costsvc.quoting.words import counted

MOST_HALVINGS = 12


def cliffs_of(catalog: Catalog, running: Evaluated, shortest: int) -> list[Section]:
    """All cliffs from a context up to the model's window, in order.

    Parameters
    ----------
    shortest : int
        Today's context, against which concurrency is counted. [token]
    """
    window = running.scenario.model.spec.max_context_tokens
    fixed, all_layouts = of_chosen(running), of_all(running)
    low = max(shortest, fixed.shortest_tokens)
    found = [
        *_wider_replicas(all_layouts, low, window),
        *_halvings(fixed, low, window),
        *_objective(running, fixed, low, window),
        *_offers(catalog, running, low, window),
        *_scaling(running, low),
        _window(running, window),
    ]
    return sorted(found, key=lambda cliff: float(str(cliff["ctx"])))


def _wider_replicas(contexts: Contexts, low: int, window: int) -> Iterator[Section]:
    """Where no layout of so many GPUs holds one sequence within the objectives: the next number must."""
    gpus = contexts.replica.gpus[:, 0]
    start = contexts.at(np.asarray([float(low)]))
    widths = np.unique(gpus)
    for narrow, wide in pairwise(widths):
        narrower = gpus <= narrow
        if np.isnan(start.sequences[narrower, 0]).all():
            continue

        def fails(tokens: Array, layouts: NDArray[np.bool_] = narrower) -> NDArray[np.bool_]:
            return np.asarray(np.isnan(contexts.at(tokens).sequences[layouts]).all(axis=0))

        ctx = first_tokens(fails, low, window)
        if ctx is not None:
            yield {
                "ctx": ctx,
                "kind": "wider_replica",
                "what": f"a replica of {counted(narrow, 'GPU')} no longer holds one request within the objectives; "
                f"it takes {wide:.0f} or more from here on",
                "gpus_before": int(narrow),
                "gpus_from_here": int(wide),
            }


def _halvings(contexts: Contexts, low: int, window: int) -> Iterator[Section]:
    """Where concurrency of the chosen layout is a half, a quarter, … of what it is at the low context."""
    at_low = contexts.at(np.asarray([float(low)])).sequences[0, 0]
    if np.isnan(at_low):
        return
    gpus = f"a replica of {counted(contexts.replica.gpus[0, 0], 'GPU')}"
    for halving in range(1, MOST_HALVINGS):
        limit = at_low / 2**halving
        if limit < 1.0:
            return

        def below(tokens: Array, limit: float = limit) -> NDArray[np.bool_]:
            sequences = contexts.at(tokens).sequences[0]
            return np.asarray(~(sequences > limit))

        ctx = first_tokens(below, low, window)
        if ctx is None:
            return
        state = contexts.at(np.asarray([float(ctx - 1)]))
        yield {
            "ctx": ctx,
            "kind": "concurrency_halves",
            "what": f"{gpus} runs 1/{2**halving} of the {at_low:.3g} requests that it runs at {low:,} tokens",
            "concurrency": number(limit),
            "bound": BOUNDS[int(state.bound[0, 0])],
        }


def _objective(running: Evaluated, contexts: Contexts, low: int, window: int) -> Iterator[Section]:
    """Where the chosen layout keeps its objectives not even with one sequence, or holds none."""

    def fails(tokens: Array) -> NDArray[np.bool_]:
        return np.asarray(np.isnan(contexts.at(tokens).sequences[0]))

    ctx = first_tokens(fails, low, window)
    if ctx is None:
        return
    if _holds(contexts, ctx):
        smaller = _with_smaller_steps(running, contexts)

        def fails_in_any_step(tokens: Array) -> NDArray[np.bool_]:
            return np.asarray(np.isnan([one.at(tokens).sequences[0] for one in smaller]).all(axis=0))

        at_once = not smaller or fails_in_any_step(np.asarray([float(ctx)]))[0]
        last = ctx if at_once else first_tokens(fails_in_any_step, ctx, window)
        if last != ctx:
            tokens = contexts.replica.calibration.step_token_budget_tokens
            yield {
                "ctx": ctx,
                "kind": "steps_must_shrink",
                "what": f"the chosen layout keeps its latency objective only with steps of fewer than {tokens:,.0f} "
                "tokens (max_num_batched_tokens), which makes prompts dearer",
                "step_tokens_before": number(tokens),
            }
        if last is None:
            return
        ctx = last
    one = np.asarray(sequence_bytes(contexts.replica, float(ctx)))[0, 0]
    holds = _holds(contexts, ctx)
    yield {
        "ctx": ctx,
        "kind": "objective_breaks" if holds else "memory_ends",
        "what": "the chosen layout misses its latency objective even with one request"
        if holds
        else f"one request's cache of {one / 1e9:.1f} GB per GPU no longer fits the chosen layout",
    }


def _holds(contexts: Contexts, ctx: int) -> bool:
    """Whether memory holds one sequence."""
    return not np.isnan(contexts.at(np.asarray([float(ctx)])).limits["memory"][0, 0])


def _with_smaller_steps(running: Evaluated, contexts: Contexts) -> list[Contexts]:
    """The layout under each smaller token budget of a step that a quote would try."""
    now = contexts.replica.calibration.step_token_budget_tokens
    usual = contexts.replica.under(running.scenario.resolved.calibration)
    every = (replace(contexts, replica=replica) for replica in smaller_steps(usual))
    return [one for one in every if one.replica.calibration.step_token_budget_tokens < now]


def _offers(catalog: Catalog, running: Evaluated, low: int, window: int) -> Iterator[Section]:
    """Where the cheapest published price that takes the context changes."""
    offers = offers_for(catalog, running, ctx=None)
    output = running.scenario.traffic.output_tokens
    limits = {*contexts_taken(offers), *(int(prompt + output) for prompt in prompts_of_tiers(offers))}
    for limit in sorted(limits):
        if not low <= limit < window:
            continue
        before, after = (_cheapest(offers, running, ctx) for ctx in (limit, limit + 1))
        if before is None or (after is not None and after[0] == before[0]):
            continue
        rest = "none takes more" if after is None else f"then {after[1].provider} at {after[0]:.4g}"
        yield {
            "ctx": limit + 1,
            "kind": "api_tier_changes",
            "what": f"the cheapest published price ends ({before[1].provider}, {before[0]:.4g} USD per "
            f"Mtok of this "
            f"mix); {rest}",
            "usd_per_mtok_before": number(before[0]),
            "usd_per_mtok_from_here": None if after is None else number(after[0]),
        }


def _cheapest(offers: list[ApiPrice], running: Evaluated, ctx: int) -> tuple[float, ApiPrice] | None:
    tiers = of_one_tier(offers, ctx - running.scenario.traffic.output_tokens)
    taking = [o for o in tiers if o.context_limit_tokens is None or o.context_limit_tokens >= ctx]
    if not taking:
        return None
    per_mtok = TOKENS_PER_MTOK / running.request_tokens
    return min(((usd_of_offer(o, running) * per_mtok, o) for o in taking), key=lambda pair: pair[0])


def _scaling(running: Evaluated, low: int) -> Iterator[Section]:
    """Where positions begin that the model reaches by rope scaling."""
    scaling = running.scenario.model.spec.rope_scaling
    if scaling is None or scaling.original_tokens < low:
        return
    yield {
        "ctx": scaling.original_tokens + 1,
        "kind": "rope_scaling_begins",
        "what": f"the configuration reaches positions beyond {scaling.original_tokens:,} by {scaling.method} rope "
        f"scaling of {scaling.factor_ratio:g} times; check quality at the length you launch",
    }


def _window(running: Evaluated, window: int) -> Section:
    scaling = running.scenario.model.spec.rope_scaling
    why = "its configuration states no rope scaling beyond"
    if scaling is not None:
        why = f"{scaling.method} rope scaling from {scaling.original_tokens:,} positions ends here"
    return {
        "ctx": window + 1,
        "kind": "window_ends",
        "what": f"{running.scenario.model.name} takes at most {window:,} tokens: {why}",
        "original_tokens": None if scaling is None else scaling.original_tokens,
    }
