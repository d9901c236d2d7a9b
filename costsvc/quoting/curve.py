"""Price, concurrency and latency against context, with the cliffs."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from math import ceil
from typing import Annotated

import numpy as np
from pydantic import Field, ValidationError

from costsvc.db.snapshot import Catalog
from costsvc.errors import Infeasible, InvalidRequest
from costsvc.ingest.faults import invalid_request
from costsvc.ingest.traffic import TrafficProfile
from costsvc.quoting.answer.plain import Plain, Section, number, number_exact
from costsvc.quoting.compare import compared_section
from costsvc.quoting.contexts import as_quoted, chosen_at, of_chosen
from costsvc.quoting.evaluate import Evaluated, changed, evaluate, plain_quote
from costsvc.quoting.launch.cliffs import cliffs_of
from costsvc.quoting.load import profile_of
from costsvc.quoting.quote import ENGINE_VERSION
from costsvc.quoting.request import QuoteRequest, Tokens

SHORTEST_TOKENS = 1024


class CurveRequest(QuoteRequest):
    """A quote's parameters, and the contexts to repeat it at."""

    from_ctx: Tokens = Field(SHORTEST_TOKENS, description="First context. [token]")
    to_ctx: Tokens | None = Field(None, description="Last context; absent: the model's window. [token]")
    points: Annotated[int, Field(ge=2, le=100)] = Field(
        13, description="Contexts, evenly on a log scale. [points]"
    )


def curve(catalog: Catalog, request: CurveRequest, today: date) -> Section:
    """The quote of each context with the same output; along a profile, of the profile stretched to it.

    Raises
    ------
    CostsvcError
        As a quote at the mark would.
    """
    base = plain_quote(request, {})
    marked = evaluate(catalog, base, today)
    output = int(number_exact(marked.choice.lengths.output))
    contexts = _contexts(request, marked)
    if request.profile is None:
        items = [_item(catalog, base, one, output, today) for one in _solved(marked, contexts)]
    else:
        profile, _ = profile_of(catalog, request.profile)
        items = [_stretched(catalog, base, profile, marked, ctx, today) for ctx in contexts]
    return {
        "as_of": (request.as_of or today).isoformat(),
        "catalog_revision": catalog.revision,
        "engine_version": ENGINE_VERSION,
        "ctx": _mark(marked),
        "output_tokens": output,
        "items": list[Plain](items),
        "cliffs": list[Plain](cliffs_of(catalog, marked, contexts[0])),
    }


@dataclass(frozen=True, slots=True)
class _Solved:
    """A context, and what runs there; None where the step budget or an objective has to give first."""

    ctx: int
    running: Evaluated | None


def _solved(marked: Evaluated, contexts: list[int]) -> Iterator[_Solved]:
    """All contexts in one evaluation; prefixes that are met again are solved one by one."""
    if marked.scenario.sharing is not None:
        yield from (_Solved(ctx, None) for ctx in contexts)
        return
    every = as_quoted(marked)
    cost = np.nan_to_num(every.at(np.asarray(contexts, dtype=np.float64)).request_gpu_s, nan=np.inf)
    for place, ctx in enumerate(contexts):
        best = int(np.argmin(cost[:, place]))
        runs = np.isfinite(cost[best, place])
        yield _Solved(ctx, chosen_at(marked, every, ctx, best) if runs else None)


def _item(catalog: Catalog, base: QuoteRequest, one: _Solved, output: int, today: date) -> Section:
    running = one.running
    if running is None:
        try:
            running = evaluate(catalog, changed(base, {"ctx": one.ctx, "output": output}), today)
        except Infeasible as error:
            return {"ctx": one.ctx, "why": error.message}
    return {"ctx": one.ctx, **compared_section(catalog, running)}


def _stretched(
    catalog: Catalog, base: QuoteRequest, profile: TrafficProfile, marked: Evaluated, ctx: int, today: date
) -> Section:
    """A quote of the profile with its longest request at a context: the mark is the profile as it is."""
    traffic = marked.scenario.traffic
    output, limit = traffic.output_tokens, traffic.context_limit_tokens
    times = (ctx - output) / (limit - output)
    try:
        longer = profile if ctx == limit else profile.stretched(times, ctx)
        running = evaluate(catalog, changed(base, {"profile": longer}), today)
    except ValidationError as error:
        return {"ctx": ctx, "times": number(times), "why": invalid_request(error, TrafficProfile).message}
    except (Infeasible, InvalidRequest) as error:
        return {"ctx": ctx, "times": number(times), "why": error.message}
    return {"ctx": ctx, "times": number(times), **compared_section(catalog, running)}


def _mark(marked: Evaluated) -> int:
    """Context of the request as asked. [token]"""
    return ceil(marked.scenario.traffic.context_limit_tokens)


def _contexts(request: CurveRequest, marked: Evaluated) -> list[int]:
    """Log-spaced whole contexts, the asked one among them."""
    window = marked.scenario.model.spec.max_context_tokens
    first = max(request.from_ctx, of_chosen(marked).shortest_tokens)
    last = min(request.to_ctx or window, window)
    if first >= last:
        raise InvalidRequest(
            f"from_ctx is {first}, but the curve ends at {last}: give a shorter one.", field="from_ctx"
        )
    spaced = np.geomspace(first, last, request.points).round().astype(int)
    mark = _mark(marked)
    asked = [mark] if first <= mark <= last else []
    return sorted({int(ctx) for ctx in (*spaced, *asked)})
