"""What could be changed, what each change saves alone and on top of others, and what it costs besides."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from pydantic import ValidationError

from costsvc.db.snapshot import Catalog
from costsvc.engine.reshape import Reshape, has_full_attention, keeping
from costsvc.engine.units import GIGA
from costsvc.errors import CostsvcError, Infeasible, InvalidRequest
from costsvc.quoting.answer.compared import latency_section, price_section
from costsvc.quoting.answer.plain import Plain, Section, number, number_exact
from costsvc.quoting.evaluate import LAYOUT, Evaluated, changed, evaluate
from costsvc.quoting.load import profile_of
from costsvc.quoting.money import money
from costsvc.quoting.request import QuoteRequest, TrafficProfile
from costsvc.quoting.speculation import draft_models

SAVES_SHARE = 0.005
"""A lever below this share of the bill is noise and stays out of the stack. [1]"""

LIFETIME_S = 300.0
"""Five minutes, for which sellers of tokens keep a prefix. [s]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lever:
    """A change of the request, or of the model's cache. `is_same_feature`: the asked context stays."""

    id: str
    what: str
    side_effect: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    reshape: Reshape | None = None
    is_same_feature: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A lever on its own: what runs then, or why nothing does."""

    lever: Lever
    running: Evaluated | None
    refused: str | None = None


def levers_for(
    catalog: Catalog, request: QuoteRequest, running: Evaluated, other_gpu: str | None
) -> list[Lever]:
    """Every lever that has a meaning for a request."""
    return [
        *_dtypes(catalog, running),
        *_layouts(running, other_gpu),
        *_speculation(catalog, request, running),
        *_caching(catalog, request, running),
        *_retention(running),
        *_shorter(catalog, request, running),
    ]


def _dtypes(catalog: Catalog, running: Evaluated) -> Iterator[Lever]:
    scenario = running.scenario
    if scenario.kv.value_bytes > 1.0:
        yield Lever(
            id="fp8_kv",
            what="KV cache in fp8",
            side_effect="cached keys and values lose precision; measure the task at long context before "
            "and after",
            changes={"kv": "fp8"},
        )
    heaviest = max(scenario.weights.ffn.value_bytes, scenario.weights.experts.value_bytes)
    if heaviest > 1.5:
        yield Lever(
            id="fp8_weights",
            what="weights in fp8",
            side_effect="weights lose precision, little where a calibrated checkpoint is published; "
            "another model file "
            "to load and to evaluate",
            changes={"weights": "fp8"},
        )
    if heaviest > 0.6:
        plan = "nvfp4" if "fp4" in scenario.gpu.spec.dense_flops_per_s else "int4"
        yield Lever(
            id="fp4_weights",
            what=f"weights in {plan}",
            side_effect="quality falls measurably on reasoning and code; where the card has no such "
            "arithmetic it "
            "saves memory and bandwidth, not prefill time",
            changes={"weights": plan},
        )


def _layouts(running: Evaluated, other_gpu: str | None) -> Iterator[Lever]:
    deployment = running.choice.deployment
    yield Lever(
        id="more_tp",
        what=f"tensor parallelism {2 * deployment.tp} in place of {deployment.tp}",
        side_effect="more room and lower latency for each request, more GPUs lost together when one fails, "
        "and more "
        "time in communication",
        changes={"tp": 2 * deployment.tp, "pp": deployment.pp, "dp": deployment.dp, "gpus": None, "ep": None},
    )
    if other_gpu is not None:
        yield Lever(
            id="another_gpu",
            what=f"another GPU: {other_gpu}",
            side_effect="other stock, regions and kernels; what was measured on today's cards is to be "
            "measured anew",
            changes={"gpu": other_gpu, **dict.fromkeys(LAYOUT)},
        )
    if running.scenario.request.mode == "colocated":
        yield Lever(
            id="disaggregation",
            what="separate prefill and decode pools",
            side_effect="two pools to size and to keep in balance, and a fast network between them",
            changes={"mode": "disaggregated"},
        )


def _speculation(catalog: Catalog, request: QuoteRequest, running: Evaluated) -> Iterator[Lever]:
    """The proposer at hand: the model's own module, else the smallest model with its vocabulary, else the text."""
    if request.speculation != "off" or not request.kv_cache:
        return
    scenario = running.scenario
    drafts = draft_models(catalog, scenario.model, scenario.traffic.context_limit_tokens)
    changes: dict[str, str] = {"speculation": "ngram"}
    proposer = "by n-grams of the text"
    if scenario.model.spec.mtp_parameters:
        changes, proposer = {"speculation": "mtp"}, "by the model's MTP layers"
    elif drafts:
        changes = {"speculation": "draft-model", "draft_model": drafts[0].id}
        proposer = f"by {drafts[0].id}"
    yield Lever(
        id="speculative_decoding",
        what=f"speculative decoding {proposer}",
        side_effect="the same answers, but the gain stands and falls with the share of accepted tokens, here an "
        "assumption: measure it on your task; proposals that fail are work for nothing when the cards are full",
        changes=changes,
    )


def _retention(running: Evaluated) -> Iterator[Lever]:
    """Five minutes; half of what there is where that is shorter. Tiers shrink to what is then held."""
    prefix = running.choice.prefix
    if prefix is None or prefix.retention_s <= 0:
        return
    kept_s = LIFETIME_S if prefix.retention_s > LIFETIME_S else prefix.retention_s / 2
    below_bytes = max(prefix.held_at(kept_s) * prefix.token_bytes - prefix.idle_bytes, 0.0)
    changes: dict[str, float | None] = {"retention_s": kept_s}
    for tier in running.scenario.load.tiers:
        held_bytes = min(below_bytes, tier.capacity_bytes)
        below_bytes -= held_bytes
        changes[f"{tier.name}_gb_per_gpu"] = held_bytes / GIGA or None
    yield Lever(
        id="shorter_retention",
        what=f"prefixes kept {kept_s:,.0f} s unused instead of {prefix.retention_s:,.0f} s",
        side_effect="who comes back later waits for the whole prompt again; in the GPU's own memory a limit saves "
        "nothing, because running requests take it first: what it saves is the rent of tiers below",
        changes=changes,
    )


def _caching(catalog: Catalog, request: QuoteRequest, running: Evaluated) -> Iterator[Lever]:
    scenario = running.scenario
    if scenario.sharing is not None:
        if not scenario.load.tiers:
            size_gb = catalog.judgements.value("offload_dram_gb_per_gpu")
            yield Lever(
                id="offload",
                what=f"prefixes that leave the GPU kept in {size_gb:g} GB of host memory per GPU",
                side_effect="hits wait for the transfer over PCIe; the host memory has to be there",
                changes={"dram_gb_per_gpu": size_gb},
            )
    elif request.profile is None and not request.hit_rate and request.kv_cache:
        share = catalog.judgements.value("example_hit_share")
        yield Lever(
            id="prefix_caching",
            what=f"prefix caching at an example hit rate of {share:g}, as the request names no profile",
            side_effect="prompts must begin alike, byte for byte, and requests must reach the replica that "
            "holds the "
            "prefix; give a profile for the rate that yours would have",
            changes={"hit_rate": share},
        )


def _shorter(catalog: Catalog, request: QuoteRequest, running: Evaluated) -> Iterator[Lever]:
    yield from _capped(catalog, request, running)
    if has_full_attention(running.scenario.model.spec) and request.kv_cache:
        kept = catalog.judgements.find("eviction_kept_share", {})
        yield Lever(
            id="kv_eviction",
            what=f"KV eviction that keeps {kept.value:.0%} of the tokens (H2O and kin)",
            side_effect=kept.reason or "what was dropped cannot be read again",
            reshape=lambda model: keeping(model, kept.value),
        )


def _capped(catalog: Catalog, request: QuoteRequest, running: Evaluated) -> Iterator[Lever]:
    """A shorter limit; the prompts of a profile shrink with it."""
    traffic = running.scenario.traffic
    limit, output = traffic.context_limit_tokens, number_exact(running.choice.lengths.output)
    cap = int(limit * catalog.judgements.value("context_cap_share"))
    if cap <= output + 1:
        return
    changes: dict[str, Any] = {"ctx": cap, "output": int(output)}
    if request.profile is not None:
        profile, _ = profile_of(catalog, request.profile)
        try:
            changes = {"profile": profile.stretched((cap - output) / (limit - output), cap)}
        except ValidationError:
            # Shorter than the parts that requests share: there is no such feature.
            return
    yield Lever(
        id="context_cap",
        what=f"context capped at {cap:,} tokens",
        side_effect="longer requests are refused or cut: this is a smaller feature",
        changes=changes,
        is_same_feature=False,
    )


def try_each(catalog: Catalog, request: QuoteRequest, levers: list[Lever], today: date) -> list[Tried]:
    """Each lever alone, by the quote that it would get."""
    return [_tried(catalog, request, lever, today) for lever in levers]


def _tried(catalog: Catalog, request: QuoteRequest, lever: Lever, today: date) -> Tried:
    try:
        running = evaluate(catalog, changed(request, lever.changes), today, lever.reshape)
    except (Infeasible, InvalidRequest) as error:
        return Tried(lever=lever, running=None, refused=error.message)
    return Tried(lever=lever, running=running)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A lever on top of those before it."""

    lever: Lever
    running: Evaluated
    saves_share: float


def stacked(
    catalog: Catalog, request: QuoteRequest, running: Evaluated | None, tried: list[Tried], today: date
) -> list[Step]:
    """The levers that keep the feature, best first, each where it still saves on top of the others.

    Judged by what a request costs, not by whole replicas: savings of a bill come in steps of a replica.
    """
    usable = [one for one in tried if one.running is not None and one.lever.is_same_feature]
    usable.sort(key=lambda one: one.running.request_usd if one.running else 0.0)
    steps: list[Step] = []
    before, changes, reshape = running, dict[str, Any](), None
    for one in usable:
        if set(one.lever.changes) & set(changes):
            continue
        together = {**changes, **one.lever.changes}
        shape = one.lever.reshape or reshape
        try:
            now = evaluate(catalog, changed(request, together), today, shape)
        except CostsvcError:
            continue
        saves = 1.0 if before is None else 1.0 - now.request_usd / before.request_usd
        if saves < SAVES_SHARE:
            continue
        steps.append(Step(lever=one.lever, running=now, saves_share=saves))
        before, changes, reshape = now, together, shape
    return steps


def lever_sections(
    catalog: Catalog, running: Evaluated | None, tried: list[Tried], rps: float
) -> list[Plain]:
    """Each lever alone, the largest saving first; those that are refused last, with the reason."""
    ordered = sorted(tried, key=lambda one: one.running.request_usd if one.running else float("inf"))
    return [_lever_section(catalog, running, one, rps) for one in ordered]


def _lever_section(catalog: Catalog, base: Evaluated | None, one: Tried, rps: float) -> Section:
    section: Section = {
        "id": one.lever.id,
        "what": one.lever.what,
        "side_effect": one.lever.side_effect,
        "is_same_feature": one.lever.is_same_feature,
        "refused": one.refused,
        "changes": {name: _plain(value) for name, value in one.lever.changes.items()},
    }
    if one.running is None:
        return section
    return section | running_section(catalog, one.running, rps) | {"saves_share": _saved(base, one.running)}


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json", exclude_unset=True) if isinstance(value, TrafficProfile) else value


def _saved(base: Evaluated | None, running: Evaluated) -> float | None:
    return None if base is None else number(1.0 - running.request_usd / base.request_usd)


def step_sections(catalog: Catalog, steps: list[Step], rps: float) -> list[Plain]:
    """The stack, each with what it adds."""
    return [
        {
            "id": step.lever.id,
            "what": step.lever.what,
            "saves_share_of_what_was_left": number(step.saves_share),
            **running_section(catalog, step.running, rps),
        }
        for step in steps
    ]


def running_section(catalog: Catalog, running: Evaluated, rps: float) -> Section:
    """What a configuration takes and costs at a rate."""
    deployment = running.choice.deployment
    sized = running.fleet(rps)
    return {
        "gpu": running.scenario.gpu.id,
        "gpus_per_replica": running.gpus,
        "tp": deployment.tp,
        "pp": deployment.pp,
        "dp": deployment.dp,
        "ep": deployment.ep,
        "weights": deployment.weights.id,
        "kv": deployment.kv.id,
        "mode": deployment.mode,
        "speculation": running.scenario.request.speculation,
        "concurrency": running.concurrency,
        "bound": running.bound,
        "replicas": sized.replicas + sized.prefill_replicas,
        "gpus": running.fleet_gpus(rps),
        "usd_per_month": money(running.usd_per_month(rps)),
        "request_usd": money(running.request_usd),
        **price_section(catalog, running),
        **latency_section(running),
    }
