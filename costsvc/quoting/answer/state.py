"""What runs: request as understood, deployment, concurrency, memory, latency, throughput."""

from typing import Final

from costsvc.engine.memory import kv_cache_bytes, memory_budget, one_sequence_bytes, wasted_share
from costsvc.engine.replica import Replica, once_per_replica
from costsvc.engine.serving import BOUNDS, breakdown
from costsvc.engine.units import MS_PER_S
from costsvc.quoting.answer.plain import Section, number, number_exact, whole
from costsvc.quoting.choice import Choice
from costsvc.quoting.request import PARAMETERS
from costsvc.quoting.scenario import Scenario
from costsvc.quoting.words import counted

_PARAMETERS: Final = frozenset(PARAMETERS)


def request_section(scenario: Scenario, choice: Choice) -> Section:
    """The request with every default in place; `defaults` names what was not given."""
    request, lengths, objectives = scenario.request, choice.lengths, choice.objectives
    understood: Section = {
        "model": scenario.model.id,
        "gpu": scenario.gpu.id,
        "ctx": whole(scenario.traffic.context_limit_tokens),
        "input_tokens": number(lengths.prompt),
        "cached_input_tokens": number(lengths.cached),
        "output_tokens": number(lengths.output),
        "input_cv": number(lengths.input_cv),
        "output_cv": number(lengths.output_cv),
        "weights": scenario.weights.id,
        "kv": scenario.kv.id,
        "stack": scenario.stack.id,
        "mode": request.mode,
        "allocation": request.allocation,
        "kv_cache": "on" if request.kv_cache else "off",
        "speculation": request.speculation,
        "slo": request.slo,
        "tpot_ms": None if objectives.tpot_s is None else number(objectives.tpot_s * MS_PER_S),
        "ttft_ms": None if objectives.ttft_s is None else number(objectives.ttft_s * MS_PER_S),
        "rps": scenario.load.rps,
        "utilization": number(scenario.utilization_share),
        "margin": number(request.margin),
        "market": request.market,
        "provider": request.provider,
        "region": request.region,
        "currency": request.currency,
        "attribution": request.attribution,
        "as_of": scenario.as_of.isoformat(),
    }
    speculation = scenario.base.speculation
    if speculation is not None:
        understood["draft_model"] = _draft_id(choice)
        understood["draft_tokens"] = speculation.draft_tokens
        understood["acceptance_rate"] = number(speculation.acceptance_share)
    if scenario.sharing is not None:
        understood["prefix_tokens"] = number(scenario.sharing.system_tokens)
        understood["prefix_share"] = number(scenario.sharing.system_share)
        understood["turns"] = number(scenario.sharing.turns)
        understood["think_s"] = number(scenario.sharing.think_s)
        understood["retention_s"] = request.retention_s
    given = request.model_fields_set
    understood["defaults"] = [name for name in understood if name in _PARAMETERS and name not in given]
    return understood


def deployment_section(scenario: Scenario, choice: Choice) -> Section:
    """The layout of one replica and how it was chosen."""
    layout = choice.deployment
    section: Section = {
        "gpu": scenario.gpu.id,
        "gpus": layout.gpus,
        "tp": layout.tp,
        "pp": layout.pp,
        "dp": layout.dp,
        "ep": layout.ep,
        "mode": layout.mode,
        "weights": layout.weights.id,
        "kv": layout.kv.id,
        "stack": scenario.stack.id,
        "allocation": layout.allocation,
        "kv_cache": "on" if layout.kv_cache else "off",
        "chosen": f"cheapest of {choice.feasible} feasible among {counted(choice.considered, 'possible layout')}",
    }
    if layout.speculation is not None:
        section["speculation"] = _speculation_section(choice)
    if layout.mode == "disaggregated":
        section["prefill_replicas_per_decode_replica"] = number(choice.state.prefill_replicas)
    return section


def _speculation_section(choice: Choice) -> Section:
    """Who proposes, what a step yields and takes for it, and what the draft holds on each GPU."""
    replica, speculation = choice.replica, choice.deployment.speculation
    assert speculation is not None  # noqa: S101 - the caller asks only where tokens are proposed
    decode, _ = breakdown(replica, choice.lengths, choice.state)
    draft, resident = replica.draft, number_exact(choice.lengths.resident)
    return {
        "proposer": speculation.proposer,
        "draft_model": _draft_id(choice),
        "draft_tokens": speculation.draft_tokens,
        "acceptance_rate": number(speculation.acceptance_share),
        "tokens_per_step": number(replica.tokens_per_step),
        "draft_step_share": number(decode.draft_s / decode.total_s),
        "draft_tp": 0 if draft is None else int(number_exact(draft.tp)),
        "draft_weights_bytes": 0 if draft is None else whole(draft.weight_bytes),
        "draft_kv_resident_sequence_bytes": 0
        if draft is None
        else round(one_sequence_bytes(draft, resident)),
    }


def _draft_id(choice: Choice) -> str | None:
    return None if choice.replica.draft is None else choice.replica.draft.model.id


def concurrency_section(choice: Choice) -> Section:
    """How many sequences run in one replica, and which bound says so."""
    state = choice.state
    return {
        "limit": max(int(number_exact(state.sequences) + 1e-9), 1),
        "mean_sequences": number(state.sequences),
        "bound": BOUNDS[state.bound.item(0)],
        "limits": {name: number(limit) for name, limit in state.limits.items()},
    }


def memory_section(scenario: Scenario, choice: Choice) -> Section:
    """Bytes of one GPU of the fullest stage, and the cache of one sequence."""
    replica = choice.replica
    context, resident = scenario.traffic.context_limit_tokens, number_exact(choice.lengths.resident)
    of_model = number_exact(kv_cache_bytes(scenario.model.spec, context, scenario.kv.value_bytes))
    section: Section = {
        "label_bytes": whole(scenario.gpu.spec.memory_bytes),
        **_budget_section(replica),
        "kv_sequence_bytes": round(one_sequence_bytes(replica, context)),
        "kv_resident_sequence_bytes": round(one_sequence_bytes(replica, resident)),
        "kv_share_of_usable": _kv_share(replica),
        "model_kv_bytes_per_sequence": whole(of_model),
        "model_kv_bytes_per_token": number(of_model / context),
        "resident_tokens_per_sequence": number(resident),
    }
    if choice.deployment.allocation == "contiguous":
        section["wasted_share"] = number(wasted_share(context, resident))
    else:
        half_block = replica.calibration.block_tokens / 2
        section["wasted_share"] = number(wasted_share(resident + half_block, resident))
    return section


@once_per_replica
def _budget_section(replica: Replica) -> Section:
    """What holds for whatever a layout is asked for."""
    budget = memory_budget(replica)
    return {
        "usable_bytes": whole(budget.usable_bytes),
        "weights_bytes": whole(budget.weight_bytes),
        "activation_bytes": whole(budget.activation_bytes),
        "runtime_bytes": whole(budget.runtime_bytes),
        "collective_bytes": whole(budget.collective_bytes),
        "left_unused_by_rule_bytes": whole(budget.reserved_bytes),
        "kv_budget_bytes": whole(budget.kv_bytes),
    }


@once_per_replica
def _kv_share(replica: Replica) -> float:
    budget = memory_budget(replica)
    return number(budget.kv_bytes / budget.usable_bytes)


def latency_section(choice: Choice) -> Section:
    """Mean latencies; TTFT both on an idle replica and at the utilization sold."""
    loop = choice.state.loop
    step_s, ttft_s = number_exact(loop.step_s), number_exact(loop.ttft_s)
    whole_s = ttft_s + number_exact(choice.lengths.output) * step_s
    return {
        "tpot_ms": number(step_s * MS_PER_S),
        "ttft_ms": number(ttft_s * MS_PER_S),
        "ttft_unloaded_ms": number(number_exact(loop.ttft_unloaded_s) * MS_PER_S),
        "request_ms": number(whole_s * MS_PER_S),
        "decode_step_ms": number(number_exact(loop.decode_step_s) * MS_PER_S),
        "mixed_step_ms": number(number_exact(loop.mixed_step_s) * MS_PER_S),
        "mixed_steps_share": number(loop.mixed_share),
        "queue": "M/D/1 on the prefill slot at the stated utilization, at most half the running sequences",
    }


def throughput_section(scenario: Scenario, choice: Choice) -> Section:
    """Saturated rates of one replica, and what is carried at the utilization sold."""
    state, lengths = choice.state, choice.lengths
    rate, prompt, output = (
        number_exact(part) for part in (state.requests_per_s, lengths.prompt, lengths.output)
    )
    output_per_gpu = rate * output / choice.deployment.gpus
    of_both: Section = {}
    if choice.deployment.mode == "disaggregated":
        of_both["output_tok_s_per_gpu_of_both_pools"] = number(
            output_per_gpu / (1.0 + number_exact(state.prefill_replicas))
        )
    return {
        "requests_per_s": number(rate),
        "input_tok_s": number(rate * prompt),
        "output_tok_s": number(rate * output),
        "output_tok_s_per_user": number(1.0 / number_exact(state.loop.step_s)),
        "output_tok_s_per_gpu": number(output_per_gpu),
        **of_both,
        "carried_requests_per_s": number(rate * scenario.utilization_share)
        if scenario.load.rps is None
        else number(scenario.load.rps),
    }
