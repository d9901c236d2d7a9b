"""The trace of a quote: every intermediate with its formula, its inputs and where they come from."""

from collections.abc import Iterator
from dataclasses import dataclass, fields

from costsvc.engine.memory import kv_cache_bytes, memory_budget, sequence_bytes
from costsvc.engine.parameters import active_parameter_count, parameter_count
from costsvc.engine.serving import BOUNDS, breakdown
from costsvc.engine.step import StepTime
from costsvc.engine.units import TOKENS_PER_MTOK
from costsvc.quoting.answer.plain import Number, Plain, Section, number
from costsvc.quoting.bill import Bill
from costsvc.quoting.choice import Choice
from costsvc.quoting.scenario import Scenario

STEP_FORMULAS = {
    "projections_s": "hypot(2 (m + m_half) N / (peak mfu), N b / (bandwidth mbu)) x stages",
    "ffn_s": "the same over the dense and shared feed-forward weights, and the router",
    "experts_s": "the same over the expected distinct experts E (1 - (1 - k/E)^m), tokens per expert k m / E",
    "decode_attention_s": "layers x (hypot(KV bytes read / (bandwidth mbu), FLOPs / (peak mfu)) + floor)",
    "prefill_attention_s": "layers x FLOPs / (peak mfu v / (v + v_half))",
    "communication_s": "layers x all-reduces (latency + 2 (n-1)/n bytes / link), all-to-all and stage hops",
    "head_s": "the matrix product of sampled tokens with the head",
    "layer_overhead_s": "layers x matrix products / 4 x launch overhead",
    "host_overhead_s": "per step + per sampled token + per prompt + waiting for launches of steps with prompts",
    "draft_s": "draft tokens x one pass of the draft, and its prefill of the same prompts",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One intermediate. `inputs` names the terms or facts it was made from."""

    name: str
    value: float
    unit: str
    formula: str
    inputs: tuple[str, ...]
    source: str

    def plain(self) -> Section:
        """As it is answered."""
        inputs: list[Plain] = list(self.inputs)
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "formula": self.formula,
            "inputs": inputs,
            "source": self.source,
        }


def trace_of(scenario: Scenario, choice: Choice, bill: Bill) -> list[Plain]:
    """All terms in the order in which they follow from one another."""
    parts = (
        _model_terms(scenario),
        _memory_terms(scenario, choice),
        _concurrency_terms(choice),
        _step_terms(choice),
        _speculation_terms(scenario, choice),
        _loop_terms(choice),
        _money_terms(scenario, choice, bill),
    )
    return [term.plain() for part in parts for term in part]


def _term(name: str, value: Number, unit: str, formula: str, inputs: str, source: str) -> Term:
    return Term(
        name=name,
        value=value if isinstance(value, int) else number(value),
        unit=unit,
        formula=formula,
        inputs=tuple(inputs.split()),
        source=source,
    )


def _model_terms(scenario: Scenario) -> Iterator[Term]:
    spec, source = scenario.model.spec, f"model {scenario.model.id}"
    context, width = scenario.traffic.context_limit_tokens, scenario.kv.value_bytes
    yield _term(
        "parameters",
        parameter_count(spec),
        "parameters",
        "sum over tensors of their shapes",
        "shapes",
        source,
    )
    yield _term(
        "active_parameters",
        active_parameter_count(spec),
        "parameters",
        "parameters - (experts - experts_per_token) x expert size, over layers",
        "parameters shapes",
        source,
    )
    yield _term("kv_value_bytes", width, "B", "bytes per cached value", "kv", f"dtype {scenario.kv.id}")
    yield _term(
        "model_kv_bytes_per_sequence",
        kv_cache_bytes(spec, context, width),
        "B",
        "sum over layers of values held at ctx x bytes per value, plus fixed state",
        "shapes ctx kv_value_bytes",
        source,
    )


def _memory_terms(scenario: Scenario, choice: Choice) -> Iterator[Term]:
    budget, stack = memory_budget(choice.replica), f"calibration of {scenario.stack.id}"
    rule = choice.replica.calibration.memory_rule
    formulas = {
        "usable_bytes": ("what the driver shows", "gpu", f"gpu {scenario.gpu.id}"),
        "weight_bytes": (
            "parameters of the fullest stage, split over ranks, x bytes per parameter",
            "parameters weights tp pp dp",
            f"weights {scenario.weights.id}",
        ),
        "activation_bytes": ("ratio x (step tokens x widest tensors x 2 B + logits)", "shapes", stack),
        "runtime_bytes": ("context and graphs", "", stack),
        "collective_bytes": ("communication buffers where ranks > 1", "tp dp", stack),
        "reserved_bytes": (f"what the rule '{rule}' leaves unused", "usable_bytes", stack),
        "kv_bytes": (
            f"rule '{rule}' of usable_bytes less what is taken",
            "usable_bytes weight_bytes activation_bytes runtime_bytes collective_bytes",
            stack,
        ),
    }
    for name, (formula, inputs, source) in formulas.items():
        yield _term(name, getattr(budget, name), "B per GPU", formula, inputs, source)
    yield _term(
        "kv_sequence_bytes",
        sequence_bytes(choice.replica, scenario.traffic.context_limit_tokens),
        "B per GPU",
        "model_kv_bytes_per_sequence of the fullest stage, ceil(H_kv / tp) / H_kv of its heads",
        "model_kv_bytes_per_sequence tp pp",
        f"model {scenario.model.id}",
    )


def _concurrency_terms(choice: Choice) -> Iterator[Term]:
    formulas = {
        "memory": "largest B with B m + z sigma sqrt(B) <= kv_bytes (paged), or kv_bytes / reserved bytes",
        "max_num_seqs": "scheduler's limit x dp",
        "step_tokens": "token budget of a step x O / (I + O) x dp x pp",
    }
    if choice.deployment.speculation is not None:
        formulas["step_tokens"] = "token budget of a step x O / (I tokens_per_step + O (k + 1)) x dp x pp"
    state = choice.state
    for name, limit in state.limits.items():
        yield _term(
            f"limit_{name}", limit, "sequences", formulas[name], "kv_bytes kv_sequence_bytes", "engine.memory"
        )
    bound = BOUNDS[int(state.bound.ravel()[0])]
    yield _term(
        "sequences",
        state.sequences,
        "sequences",
        f"largest B within all limits and objectives; bound by {bound}",
        " ".join(f"limit_{name}" for name in state.limits),
        "engine.serving",
    )


def _step_terms(choice: Choice) -> Iterator[Term]:
    decode, mixed = breakdown(choice.replica, choice.lengths, choice.state)
    parts = [part for part in fields(StepTime) if part.name != "draft_s" or choice.replica.draft is not None]
    for kind, step in (("decode_step", decode), ("mixed_step", mixed)):
        for part in parts:
            yield _term(
                f"{kind}.{part.name}",
                getattr(step, part.name),
                "s",
                STEP_FORMULAS[part.name],
                "sequences shapes",
                "engine.operators",
            )
        yield _term(f"{kind}_s", step.total_s, "s", "sum of its terms", f"{kind}.*", "engine.step")


def _speculation_terms(scenario: Scenario, choice: Choice) -> Iterator[Term]:
    speculation, draft = scenario.base.speculation, choice.replica.draft
    if speculation is None:
        return
    source = "assumptions" if scenario.request.acceptance_rate is None else "request"
    share = speculation.acceptance_share
    yield _term("acceptance_share", share, "1", "of tokens whose predecessors were accepted", "", source)
    yield _term(
        "tokens_per_step",
        choice.replica.tokens_per_step,
        "token",
        "(1 - a^(k+1)) / (1 - a), k draft tokens (Leviathan et al. 2023); a step verifies k + 1 tokens of each",
        "acceptance_share draft_tokens",
        "engine.speculation",
    )
    if draft is None:
        return
    width = ("B per GPU", f"of {draft.model.id}, inside weight_bytes and kv_sequence_bytes")
    context = scenario.traffic.context_limit_tokens
    yield _term("draft_weight_bytes", draft.weight_bytes, *width, "shapes tp", f"model {draft.model.id}")
    yield _term(
        "draft_kv_sequence_bytes",
        sequence_bytes(draft, context),
        *width,
        "shapes tp",
        f"model {draft.model.id}",
    )


def _loop_terms(choice: Choice) -> Iterator[Term]:
    loop, state = choice.state.loop, choice.state
    proposed = choice.deployment.speculation is not None
    per_token, inputs = (", / tokens_per_step", " tokens_per_step") if proposed else ("", "")
    yield _term(
        "mixed_share",
        loop.mixed_share,
        "1",
        f"I B / (P O){' x tokens_per_step' if proposed else ''}: steps that carry prompt tokens",
        "sequences",
        "engine.serving",
    )
    yield _term(
        "step_s",
        loop.step_s,
        "s",
        "mixed_share x mixed_step_s + (1 - mixed_share) x decode_step_s" + per_token,
        "mixed_share mixed_step_s decode_step_s" + inputs,
        "engine.serving",
    )
    yield _term(
        "requests_per_s", state.requests_per_s, "1/s", "B / (step_s O)", "sequences step_s", "engine.serving"
    )
    yield _term(
        "request_gpu_s",
        state.request_gpu_s,
        "GPU s",
        "gpus x (step_s O / B + prefill pool's time)",
        "sequences step_s gpus",
        "engine.serving",
    )


def _money_terms(scenario: Scenario, choice: Choice, bill: Bill) -> Iterator[Term]:
    yield _term(
        "gpu_second_usd", bill.gpu_second_usd, "USD/s", "USD per GPU-hour / 3600", "gpu_price", "price"
    )
    multiplier = "fleet cost / carried saturated cost" if bill.fleet else "1 / utilization"
    yield _term("load_multiplier", bill.load_multiplier, "1", multiplier, "utilization rps", "engine.pricing")
    yield _term(
        "request_usd",
        bill.request_usd,
        "USD",
        "request_gpu_s x gpu_second_usd x load_multiplier x (1 + margin)",
        "request_gpu_s gpu_second_usd load_multiplier margin",
        "engine.pricing",
    )
    how = f"attribution '{scenario.request.attribution}', scaled so that prices x tokens = request_usd"
    for name, gpu_s in (
        ("input", bill.tokens.uncached),
        ("cached_input", bill.tokens.cached),
        ("output", bill.tokens.output),
    ):
        yield _term(
            f"{name}_usd_per_mtok",
            gpu_s * bill.factor * TOKENS_PER_MTOK,
            "USD/Mtok",
            how,
            "request_gpu_s request_usd",
            "engine.pricing",
        )
    yield _term(
        "conservation_residual_share",
        bill.tokens.residual_share,
        "1",
        "unscaled prices x tokens / request cost - 1",
        "request_gpu_s",
        "engine.pricing",
    )
    yield _term("gpus", choice.deployment.gpus, "GPUs", "tp x pp x dp", "tp pp dp", "deployment")
