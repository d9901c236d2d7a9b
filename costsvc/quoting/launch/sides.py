"""One side of the comparison: what runs, how many of it, what it costs, how fast it is."""

from costsvc.db.snapshot import Catalog
from costsvc.engine.memory import memory_budget, sequence_bytes
from costsvc.engine.quantiles import tpot_quantiles_s, ttft_quantiles_s
from costsvc.engine.units import MS_PER_S
from costsvc.quoting.answer.plain import Section, number, whole
from costsvc.quoting.evaluate import Evaluated
from costsvc.quoting.launch.levers import running_section
from costsvc.quoting.launch.traffic import Offered
from costsvc.quoting.money import money

QUANTILES = (0.5, 0.95)
HOW = (
    "TTFT: the loop's time for a prompt, scaled over the log-normal spread of prompt lengths, plus a wait "
    "that is zero "
    "or exponential with the loop's mean wait; TPOT: a request's mean over its tokens, of which a binomial "
    "number share "
    "a step with somebody's prompt. Objectives hold for means"
)


def side_section(catalog: Catalog, running: Evaluated, offered: Offered) -> Section:
    """A configuration at its mean rate and in its busiest hour."""
    traffic, choice = running.scenario.traffic, running.choice
    budget = memory_budget(choice.replica)
    context = traffic.context_limit_tokens
    peak = running.fleet(offered.peak_rps)
    return {
        "model": running.scenario.model.id,
        "ctx": whole(context),
        "input_tokens": number(choice.lengths.prompt),
        "cached_input_tokens": number(choice.lengths.cached),
        "output_tokens": number(choice.lengths.output),
        **running_section(catalog, running, offered.rps),
        "at_peak": {
            "replicas": peak.replicas + peak.prefill_replicas,
            "gpus": running.fleet_gpus(offered.peak_rps),
            "usd_per_month": money(running.usd_per_month(offered.peak_rps)),
        },
        "usd_per_gpu_hour": money(running.price.usd_per_gpu_hour),
        "memory": {
            "usable_bytes": whole(budget.usable_bytes),
            "weights_bytes": whole(budget.weight_bytes),
            "kv_budget_bytes": whole(budget.kv_bytes),
            "kv_sequence_bytes": whole(sequence_bytes(choice.replica, context)),
            "kv_share_of_usable": number(budget.kv_bytes / budget.usable_bytes),
        },
        "latency": latency_section(running),
    }


def latency_section(running: Evaluated) -> Section:
    """Medians and 95th percentiles, and how they come about."""
    choice, share = running.choice, running.scenario.utilization_share
    ttft = ttft_quantiles_s(choice.replica, choice.lengths, choice.state, share, QUANTILES)
    tpot = tpot_quantiles_s(choice.replica, choice.lengths, choice.state, QUANTILES)
    return {
        "ttft_ms": number(choice.state.loop.ttft_s * MS_PER_S),
        "ttft_ms_p50": number(ttft[0] * MS_PER_S),
        "ttft_ms_p95": number(ttft[1] * MS_PER_S),
        "tpot_ms": number(choice.state.loop.step_s * MS_PER_S),
        "tpot_ms_p50": number(tpot[0] * MS_PER_S),
        "tpot_ms_p95": number(tpot[1] * MS_PER_S),
        "how": HOW,
    }


def multiples_section(
    now: Evaluated | None, before: Offered | None, running: Evaluated, offered: Offered
) -> Section | None:
    """How many times as much the feature takes of each; None where nothing runs today."""
    if now is None or before is None:
        return None
    return {
        "request_usd": number(running.request_usd / now.request_usd),
        "blended_usd_per_mtok": number(running.usd_per_mtok / now.usd_per_mtok),
        "concurrency": number(running.concurrency / now.concurrency),
        "gpus": number(running.fleet_gpus(offered.rps) / now.fleet_gpus(before.rps)),
        "usd_per_month": number(running.usd_per_month(offered.rps) / now.usd_per_month(before.rps)),
    }
