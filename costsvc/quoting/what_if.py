"""The same model with another attention or another cache: bytes, users and price side by side."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from pydantic import Field

from costsvc.db.snapshot import Catalog
from costsvc.engine.memory import kv_cache_bytes
from costsvc.engine.parameters import parameter_count
from costsvc.engine.reshape import (
    LATENT_DIM,
    ROPE_DIM,
    Reshape,
    has_full_attention,
    query_heads_of,
    with_kv_heads,
    with_latent,
    with_window,
)
from costsvc.errors import CostsvcError, InvalidRequest
from costsvc.quoting.answer.plain import Section, number, number_exact, whole
from costsvc.quoting.evaluate import Evaluated, changed, evaluate, plain_quote
from costsvc.quoting.lists import parts_of
from costsvc.quoting.money import money
from costsvc.quoting.quote import ENGINE_VERSION
from costsvc.quoting.request import QuoteRequest, Text, Tokens

MOST_VARIANTS = 12
_NOT_WITHOUT_CACHE = ("hit_rate", "prefix_tokens", "prefix_share", "turns", "think_s")


class WhatIfRequest(QuoteRequest):
    """A quote's parameters, and which counterfactuals beside the usual ones."""

    groups: Text = Field("8,4,2", description="KV heads of the GQA variants, separated by commas. [heads]")
    window: Tokens = Field(4096, description="Window of the sliding variant. [token]")
    kv_dtypes: Text = Field("fp8", description="Cache dtypes to compare, separated by commas.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One counterfactual: another model, another request, or both."""

    id: str
    what: str
    reshape: Reshape | None = None
    changes: dict[str, Any] = field(default_factory=dict)


def what_if(catalog: Catalog, request: WhatIfRequest, today: date) -> Section:
    """The released model and its variants, each on its cheapest layout of the same GPU.

    Raises
    ------
    CostsvcError
        As a quote of the released model would.
    """
    base = plain_quote(request, {})
    released = evaluate(catalog, base, today)
    return {
        "as_of": (request.as_of or today).isoformat(),
        "catalog_revision": catalog.revision,
        "engine_version": ENGINE_VERSION,
        "note": "counterfactuals: nobody trained these models; what a cache would hold and cost, and no more",
        "items": [
            _section(catalog, base, variant, released, today)
            for variant in _variants(catalog, request, released)
        ],
    }


def _variants(catalog: Catalog, request: WhatIfRequest, released: Evaluated) -> Iterator[Variant]:
    yield Variant(id="released", what="as released")
    yield from _architectures(request, released)
    for dtype in parts_of(request.kv_dtypes, "kv_dtypes", most=MOST_VARIANTS):
        found = catalog.dtype(dtype).spec
        if found.id != released.scenario.kv.id:
            yield Variant(id=f"kv_{found.id}", what=f"cache in {found.id}", changes={"kv": found.id})
    yield from _allocations(catalog, request, released)


def _architectures(request: WhatIfRequest, released: Evaluated) -> Iterator[Variant]:
    spec = released.scenario.model.spec
    heads = query_heads_of(spec)
    if heads is not None:
        yield Variant(
            id="mha", what=f"MHA: {heads} KV heads", reshape=lambda model: with_kv_heads(model, heads)
        )
        for kv_heads in _groups(request.groups, heads):
            yield Variant(
                id=f"gqa_{kv_heads}",
                what=f"GQA: {kv_heads} KV heads",
                reshape=lambda model, kv_heads=kv_heads: with_kv_heads(model, kv_heads),  # type: ignore[misc]
            )
        yield Variant(id="mqa", what="MQA: one KV head", reshape=lambda model: with_kv_heads(model, 1))
    if has_full_attention(spec):
        yield Variant(
            id="mla", what=f"MLA: a latent of {LATENT_DIM} + {ROPE_DIM} values", reshape=with_latent
        )
        yield Variant(
            id="sliding",
            what=f"all layers see the last {request.window:,} tokens",
            reshape=lambda model: with_window(model, request.window),
        )


def _allocations(catalog: Catalog, request: WhatIfRequest, released: Evaluated) -> Iterator[Variant]:
    for allocation, what in (
        ("paged", "blocks of 16 tokens, taken as a sequence grows"),
        ("contiguous", "the longest context reserved for every sequence"),
    ):
        yield Variant(id=allocation, what=f"{allocation}: {what}", changes={"allocation": allocation})
    if released.scenario.sharing is None and request.ctx is not None and not request.hit_rate:
        share = catalog.judgements.value("example_hit_share")
        shared = int(share * number_exact(released.choice.lengths.prompt))
        if shared > 0:
            yield Variant(
                id="prefix_shared",
                what=f"a prompt of {shared:,} tokens shared by all and held once",
                changes={"prefix_tokens": shared},
            )
    off = {"kv_cache": False, **dict.fromkeys(_NOT_WITHOUT_CACHE)}
    if request.profile is None:
        yield Variant(id="no_cache", what="no cache: every step recomputes the whole prefix", changes=off)


def _groups(text: str, heads: int) -> list[int]:
    found = []
    for part in parts_of(text, "groups", most=MOST_VARIANTS):
        if not part.isascii() or not part.isdigit() or not 0 < int(part) <= heads or heads % int(part):
            divisors = ", ".join(str(n) for n in range(1, heads + 1) if heads % n == 0)
            raise InvalidRequest(
                f"groups has '{part[:40]}', which is not a number of KV heads for {heads} query heads. "
                f"Choose from "
                f"{divisors}.",
                field="groups",
            )
        found.append(int(part))
    return found


def _section(
    catalog: Catalog, base: QuoteRequest, variant: Variant, released: Evaluated, today: date
) -> Section:
    section: Section = {"id": variant.id, "what": variant.what}
    try:
        running = evaluate(catalog, changed(base, variant.changes), today, variant.reshape)
    except CostsvcError as error:
        return section | {"why": error.message}
    spec, kv = running.scenario.model.spec, running.scenario.kv
    context = running.scenario.traffic.context_limit_tokens
    holds = kv_cache_bytes(spec, context, kv.value_bytes) if base.kv_cache else 0.0
    return section | {
        "parameters": parameter_count(spec),
        "kv_bytes_per_sequence": whole(holds) if running.scenario.request.kv_cache else 0,
        "gpus": running.gpus,
        "tp": running.choice.deployment.tp,
        "concurrency": running.concurrency,
        "bound": running.bound,
        "users_memory_holds_per_gpu": number(running.choice.state.limits["memory"] / running.gpus),
        "users_per_gpu": number(number_exact(running.choice.state.sequences) / running.gpus),
        "keeps_objectives": running.keeps_objectives,
        "request_usd": money(running.request_usd),
        "blended_usd_per_mtok": money(running.usd_per_mtok),
        "times_released": number(running.request_usd / released.request_usd),
    }
