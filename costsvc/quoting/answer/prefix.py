"""What prefix caching saves, what context costs to keep, and for how long keeping pays."""

from dataclasses import dataclass, replace
from math import isnan

from costsvc.db.snapshot import Catalog
from costsvc.engine.memory import Lengths
from costsvc.engine.pricing import break_even_retention_s, prefill_gpu_s
from costsvc.engine.serving import SteadyState
from costsvc.engine.units import GIGA, HOURS_PER_MONTH, MS_PER_S, SECONDS_PER_HOUR
from costsvc.quoting.answer.plain import DIGITS, Number, Section, number, number_exact
from costsvc.quoting.answer.tiers import tier_sections
from costsvc.quoting.bill import Bill
from costsvc.quoting.choice import Choice
from costsvc.quoting.load import LOWER_TIERS
from costsvc.quoting.money import money
from costsvc.quoting.scenario import Scenario

THOUSAND_TOKENS = 1000


@dataclass(frozen=True, slots=True)
class _Case:
    """The chosen layout at some hit rate."""

    lengths: Lengths
    state: SteadyState
    cost_gpu_s: float
    prefill_gpu_s: float


def prefix_section(catalog: Catalog, scenario: Scenario, choice: Choice, bill: Bill) -> Section:
    """Savings against no cache at all hits; an example, labelled, where the request names no hits."""
    if not choice.deployment.kv_cache:
        return {"hit_rate": 0.0, "note": "kv_cache=off keeps nothing that could be found again"}
    assert bill.compared is not None  # noqa: S101 - a quote with a cache always compares
    prompt = number_exact(choice.lengths.prompt)
    hits = number_exact(choice.lengths.cached)
    example = hits == 0 and scenario.sharing is None
    own = _case(choice, choice.lengths, choice.state)
    other = _case(choice, bill.compared.lengths, bill.compared.state)
    without, cached = (own, other) if example else (other, own)
    section: Section = {
        "hit_rate": number(hits / prompt),
        "example": example,
        "example_hit_rate": number(number_exact(cached.lengths.cached) / prompt) if example else None,
        "note": "the request names no shared prefix; savings are what it would save at the example hit rate"
        if example
        else "savings are against the same deployment without prefix hits",
    }
    section |= _savings(scenario, bill, without, cached)
    if choice.prefix is not None:
        section["retention_s"] = number(min(choice.prefix.retention_s, 1e9))
        section["idle_kv_bytes_per_gpu"] = number(choice.prefix.idle_bytes)
        section["shared_prefix_tokens"] = number(choice.prefix.shared_tokens)
        section["match_tokens"] = number(choice.prefix.match_tokens)
    section["break_even_retention_s"] = _retention(catalog, choice, bill)
    return section | tier_sections(catalog, scenario, choice, bill)


def other_lengths(catalog: Catalog, scenario: Scenario, choice: Choice) -> Lengths | None:
    """What a quote is compared with: no hits at all, or the example's where it has none. None without a cache."""
    if not choice.deployment.kv_cache:
        return None
    prompt = number_exact(choice.lengths.prompt)
    without_hits = number_exact(choice.lengths.cached) == 0 and scenario.sharing is None
    cached = catalog.judgements.value("example_hit_share") * prompt if without_hits else 0.0
    return replace(
        choice.lengths,
        uncached=prompt - cached,
        cached=cached,
        shared=0.0,
    )


def rent_section(choice: Choice, bill: Bill) -> Section:
    """Rent of context in memory, and what more of it costs all users together."""
    usd_per_token_s = bill.rent_gpus_per_byte * bill.token_bytes * bill.gpu_second_usd * bill.load_multiplier
    thousand = usd_per_token_s * THOUSAND_TOKENS * SECONDS_PER_HOUR
    lost = bill.rent_gpus_per_byte * bill.token_bytes * THOUSAND_TOKENS / choice.deployment.gpus
    return {
        "usd_per_1000_tokens_hour": money(thousand),
        "memory_binds": bill.rent_gpus_per_byte > 0,
        "kv_bytes_per_token_per_gpu": number(bill.token_bytes),
        "opportunity": {
            "requests_per_s_lost_per_1000_live_tokens": number(
                lost * number_exact(choice.state.requests_per_s)
            ),
            "usd_per_month_per_1000_live_tokens": money(thousand * HOURS_PER_MONTH),
        },
    }


def _case(choice: Choice, lengths: Lengths, state: SteadyState) -> _Case:
    cost_gpu_s = number_exact(state.request_gpu_s)
    return _Case(lengths, state, cost_gpu_s, prefill_gpu_s(choice.replica, lengths, state))


def _savings(scenario: Scenario, bill: Bill, without: _Case, cached: _Case) -> Section:
    """What hits save; null where one of the two cases cannot meet the objectives at all."""
    if isnan(without.cost_gpu_s) or isnan(cached.cost_gpu_s):
        return {"savings": None, "why_null": "the deployment meets the objectives in only one of both cases"}
    saved_gpu_s = without.cost_gpu_s - cached.cost_gpu_s
    rate = scenario.load.rps or number_exact(cached.state.requests_per_s) * scenario.utilization_share
    monthly = saved_gpu_s * bill.factor * rate * HOURS_PER_MONTH * SECONDS_PER_HOUR
    per = "at the offered rate" if scenario.load.rps else "per replica"
    return {
        "savings": {
            "usd_per_request": money(saved_gpu_s * bill.factor),
            "usd_per_month": money(monthly),
            "per": per,
            "share_of_bill": number(saved_gpu_s / without.cost_gpu_s),
            "share_of_prefill": number(1.0 - cached.prefill_gpu_s / without.prefill_gpu_s),
            "ttft_ms_change": number(_change(cached.state.loop.ttft_s, without.state.loop.ttft_s) * MS_PER_S),
            "extra_concurrency": _change(cached.state.sequences, without.state.sequences),
        }
    }


def _change(after: Number, before: Number) -> float:
    """What was gained; nothing where the two agree to more digits than an answer has."""
    new, old = number_exact(after), number_exact(before)
    return 0.0 if abs(new - old) <= abs(old) * 10.0**-DIGITS else number(new - old)


def _retention(catalog: Catalog, choice: Choice, bill: Bill) -> Section:
    """Break-even interval by tier; null is unbounded, because the tier's rent is zero."""
    second_usd = bill.gpu_second_usd * bill.load_multiplier
    saved = (bill.tokens.uncached - bill.tokens.cached) * second_usd
    here = break_even_retention_s(saved, 0.0, bill.rent_gpus_per_byte * bill.token_bytes * second_usd)
    section: Section = {"hbm": None if here is None else number(here)}
    ranks = choice.deployment.tp * choice.deployment.pp
    month_s = HOURS_PER_MONTH * SECONDS_PER_HOUR
    value = catalog.judgements.value
    for tier in LOWER_TIERS:
        load = bill.token_bytes / value(f"{tier}_bytes_per_s") * ranks * second_usd
        rent = value(f"{tier}_usd_per_gb_month") / month_s * bill.token_bytes * ranks / GIGA
        kept = break_even_retention_s(saved, load, rent)
        section[tier] = None if kept is None else number(kept)
    section["null_means"] = "unbounded: the tier's rent is zero"
    return section
