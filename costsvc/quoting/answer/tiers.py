"""Where prefixes are kept: hits by tier, what one more GB brings, and when to keep, offload or recompute."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from costsvc.db.snapshot import Catalog
from costsvc.engine.keeping import Keeping, cheapest_keeping
from costsvc.engine.prefix import PrefixState
from costsvc.engine.units import GIGA, HOURS_PER_MONTH, MS_PER_S, SECONDS_PER_HOUR
from costsvc.quoting.answer.plain import Plain, Section, number
from costsvc.quoting.bill import Bill
from costsvc.quoting.choice import Choice
from costsvc.quoting.load import LOWER_TIERS
from costsvc.quoting.money import money
from costsvc.quoting.scenario import Scenario

HBM = "hbm"
RECOMPUTE = "recompute"
LIFETIMES_S = (300.0, 3600.0)
MONTH_S = HOURS_PER_MONTH * SECONDS_PER_HOUR


@dataclass(frozen=True, slots=True)
class _Worth:
    """What a found token saves, and what each tier asks for keeping and for bringing one. [USD/token]"""

    saved_usd: float
    input_usd: float
    room_usd_per_s: float
    rent_usd_per_s: dict[str, float]
    load_usd: dict[str, float]


def tier_sections(catalog: Catalog, scenario: Scenario, choice: Choice, bill: Bill) -> Section:
    """What a prefix cache of this profile holds and is worth; empty where nothing comes again."""
    if choice.prefix is None:
        return {}
    gained = _gained_by_a_gb(choice.prefix)
    worth = _worth(catalog, choice, bill, gained)
    return {
        "by_tier": _by_tier(choice.prefix, number(choice.lengths.prompt)),
        "one_more_gb": _one_more_gb(choice, choice.prefix, worth, gained),
        "lifetimes": _lifetimes(choice, choice.prefix, worth),
        "keep_or_recompute": _keep_or_recompute(worth),
        "published": _published(catalog, scenario, bill),
    }


def _worth(catalog: Catalog, choice: Choice, bill: Bill, gained: float) -> _Worth:
    """Memory of the GPU has two uses, running sequences and other prefixes: the dearer one is its rent."""
    second_usd = bill.gpu_second_usd * bill.load_multiplier
    ranks = choice.deployment.tp * choice.deployment.pp
    value, prefix = catalog.judgements.value, choice.prefix
    saved_usd = (bill.tokens.uncached - bill.tokens.cached) * second_usd
    as_room = bill.rent_gpus_per_byte * bill.token_bytes * second_usd
    as_cache = 0.0
    if prefix is not None:
        as_cache = gained * prefix.requests_per_s * saved_usd / (GIGA / prefix.token_bytes)
    rent, load = {HBM: max(as_room, as_cache)}, {HBM: 0.0}
    for tier in LOWER_TIERS:
        usd_per_byte_s = value(f"{tier}_usd_per_gb_month") / GIGA / MONTH_S
        rent[tier] = usd_per_byte_s * bill.token_bytes * ranks
        load[tier] = bill.token_bytes / value(f"{tier}_bytes_per_s") * ranks * second_usd
    return _Worth(
        saved_usd=saved_usd,
        input_usd=bill.tokens.uncached * second_usd,
        room_usd_per_s=as_room,
        rent_usd_per_s=rent,
        load_usd=load,
    )


def _gained_by_a_gb(prefix: PrefixState) -> float:
    """Tokens of a mean request found in addition with one more GB on each GPU. [token]"""
    more_tokens = GIGA / prefix.token_bytes
    longer_s = prefix.retention_of(prefix.held_at(prefix.retention_s) + more_tokens)
    return max(prefix.cached_at(longer_s) - prefix.cached_at(prefix.retention_s), 0.0)


def _by_tier(prefix: PrefixState, prompt_tokens: float) -> list[Plain]:
    return [
        {
            "tier": tier.name,
            "gb_per_gpu": number(tier.capacity_bytes / GIGA),
            "hit_rate": number(tier.cached_tokens / prompt_tokens),
            "retention_s": number(tier.retention_s),
            "load_ms": number(tier.load_s * MS_PER_S),
        }
        for tier in prefix.tiers
    ]


def _one_more_gb(choice: Choice, prefix: PrefixState, worth: _Worth, gained: float) -> Section:
    """A month of one more GB on each GPU: hits gained, wherever it is added, less what it could earn else."""
    caches_per_gpu = choice.deployment.dp / choice.deployment.gpus
    saved = gained * prefix.requests_per_s * caches_per_gpu * MONTH_S * worth.saved_usd
    section: Section = {"hit_rate_gained": number(gained / number(choice.lengths.prompt))}
    for tier in worth.rent_usd_per_s:
        rent = worth.room_usd_per_s if tier == HBM else worth.rent_usd_per_s[tier]
        # Rents are of all GPUs that share a sequence; one of them holds its part.
        rent_usd = rent * GIGA / prefix.token_bytes * caches_per_gpu * MONTH_S
        section[tier] = {
            "saved_usd_per_month": money(saved),
            "rent_usd_per_month": money(rent_usd),
            "net_usd_per_month": money(saved - rent_usd),
        }
    return section


def _lifetimes(choice: Choice, prefix: PrefixState, worth: _Worth) -> Section:
    """Keeping every prefix five minutes or an hour after its last use, as vendors sell it, in each tier."""
    section: Section = {}
    caches = choice.deployment.dp
    room = sum(tier.capacity_bytes for tier in prefix.tiers) / prefix.token_bytes
    nets: dict[str, dict[float, float]] = {tier: {} for tier in worth.rent_usd_per_s}
    for lifetime_s in LIFETIMES_S:
        cached, held = prefix.cached_at(lifetime_s), prefix.held_at(lifetime_s)
        used = cached * prefix.requests_per_s * caches * MONTH_S
        tiers: Section = {}
        for tier, rent in worth.rent_usd_per_s.items():
            net = used * (worth.saved_usd - worth.load_usd[tier]) - held * caches * rent * MONTH_S
            nets[tier][lifetime_s] = net
            tiers[tier] = {
                "net_usd_per_month": money(net),
                "write_premium_share": number(rent * lifetime_s / worth.input_usd),
            }
        section[f"{lifetime_s:.0f}_s"] = {
            "hit_rate": number(cached / number(choice.lengths.prompt)),
            "fits": held <= room,
            "held_gb_per_replica": number(
                held * caches * prefix.token_bytes * choice.deployment.tp * choice.deployment.pp / GIGA
            ),
            **tiers,
        }
    section["best_lifetime_s"] = {tier: _best_lifetime(net) for tier, net in nets.items()}
    section["note"] = "null: neither pays; the write premium is the rent of the lifetime over the input price"
    return section


def _best_lifetime(nets: dict[float, float]) -> float | None:
    lifetime_s, net = max(nets.items(), key=lambda pair: pair[1])
    return lifetime_s if net > 0 else None


def _keep_or_recompute(worth: _Worth) -> Section:
    """The cheapest thing to do with a conversation's context until its next use, by how long that takes."""
    options = [
        Keeping(name=tier, once_usd=worth.load_usd[tier], rent_usd_per_s=rent)
        for tier, rent in worth.rent_usd_per_s.items()
    ]
    recompute = Keeping(name=RECOMPUTE, once_usd=max(worth.saved_usd, 0.0), rent_usd_per_s=0.0)
    pieces = cheapest_keeping([*options, recompute])
    intervals: list[Plain] = [
        {"do": name, "from_s": number(start), "to_s": None if end is None else number(end)}
        for name, start, end in pieces
    ]
    return {
        "by_think_time": intervals,
        "usd_per_1000_tokens": {
            option.name: {
                "once": money(1000 * option.once_usd),
                "per_hour": money(1000 * option.rent_usd_per_s * SECONDS_PER_HOUR),
            }
            for option in (*options, recompute)
        },
    }


def _published(catalog: Catalog, scenario: Scenario, bill: Bill) -> Section:
    """Our cached price over our input price, beside what sellers of the same model ask."""
    ratios: Sequence[float] = sorted(
        float(price.cached_input_usd_per_mtok / price.input_usd_per_mtok)
        for price in catalog.api_prices(scenario.model.id, scenario.as_of)
        if price.cached_input_usd_per_mtok is not None and price.input_usd_per_mtok
    )
    return {
        "computed_cached_over_input": number(bill.tokens.cached / bill.tokens.uncached),
        "published_cached_over_input_median": number(median(ratios)) if ratios else None,
        "published_lowest": number(ratios[0]) if ratios else None,
        "published_highest": number(ratios[-1]) if ratios else None,
        "sellers": len(ratios),
    }
