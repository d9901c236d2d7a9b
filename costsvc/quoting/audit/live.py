"""A quote's inputs as named cells, and the engine's specs with those names in place of numbers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Final, Literal, cast

from costsvc.db.entries import Judgement
from costsvc.engine.memory import Lengths
from costsvc.engine.replica import Replica
from costsvc.engine.specs import Calibration, GpuSpec, MatrixEfficiency, Objectives
from costsvc.quoting.answer.plain import number_exact
from costsvc.quoting.audit.record import Formula, Terms
from costsvc.quoting.bill import Bill
from costsvc.quoting.choice import Choice
from costsvc.quoting.gpu_price import GpuPrice
from costsvc.quoting.scenario import Scenario

Kind = Literal["live", "assumption", "fact", "deployment", "solved"]

# Numbers that decide how memory is laid out or which branch is taken: to change one is another deployment.
_FIXED: Final = frozenset(
    {
        "node_gpus",
        "activation_ratio",
        "sampled_rows",
        "step_token_budget_tokens",
        "max_sequences",
        "block_tokens",
        "prefix_match_tokens",
    }
)
_DIMENSIONS: Final = (
    "query_heads",
    "kv_heads",
    "head_dim",
    "value_dim",
    "latent_dim",
    "rope_dim",
    "nope_dim",
)
_SPLIT: Final = (
    "attention_parameters",
    "ffn_parameters",
    "router_parameters",
    "head_parameters",
    "weight_bytes",
)
_GPU: Final = ("memory_bytes_per_s", "link_bytes_per_s", "pcie_bytes_per_s", "usable_memory_bytes")
_MATRICES: Final = ("mfu_share", "mbu_share", "half_tokens")


@dataclass(frozen=True, slots=True)
class Input:
    """A cell that something is computed from. `kind` `live` may be changed."""

    name: str
    value: float
    unit: str
    kind: Kind
    source: str


@dataclass(slots=True)
class Inputs:
    """Named cells, in the order in which they are listed."""

    terms: Terms = field(default_factory=Terms)
    listed: list[Input] = field(default_factory=list)

    def add(self, name: str, value: float, unit: str, kind: Kind, source: str) -> Formula:
        """A new named cell, as a formula that refers to it."""
        self.listed.append(Input(name, float(value), unit, kind, source))
        return Formula(name, value, self.terms, is_atom=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """The quote with names for numbers: what the engine's functions are recorded on."""

    inputs: Inputs
    replica: Replica
    lengths: Lengths
    objectives: Objectives
    context_tokens: Formula
    uncached_tokens: Formula
    cached_tokens: Formula
    output_tokens: Formula
    usd_per_gpu_hour: Formula
    utilization_share: Formula
    margin_share: Formula
    multiplier: Formula | None


def live_quote(scenario: Scenario, choice: Choice, price: GpuPrice, bill: Bill) -> Live:
    """Name every input of a quote once, those that a reader changes most first."""
    inputs = Inputs()
    usd = inputs.add(
        "gpu_usd_per_hour",
        bill.gpu_second_usd * 3600.0,
        "USD/h",
        "live",
        f"{price.basis}; cache tiers included",
    )
    utilization = inputs.add(
        "utilization",
        scenario.utilization_share,
        "1",
        "live",
        _basis(scenario, "utilization_share", "utilization"),
    )
    margin = inputs.add("margin", scenario.request.margin, "1", "live", "request")
    multiplier = None
    if len(bill.hours) > 1 or scenario.load.rps:
        multiplier = inputs.add(
            "load_multiplier", bill.load_multiplier, "1", "solved", "whole replicas for the offered rate"
        )
    lengths, context = _lengths(inputs, scenario, choice)
    objectives = _objectives(inputs, choice)
    return Live(
        inputs=inputs,
        replica=_replica(inputs, scenario, choice),
        lengths=lengths,
        objectives=objectives,
        context_tokens=context,
        uncached_tokens=lengths.uncached,  # type: ignore[arg-type]
        cached_tokens=lengths.cached,  # type: ignore[arg-type]
        output_tokens=lengths.output,  # type: ignore[arg-type]
        usd_per_gpu_hour=usd,
        utilization_share=utilization,
        margin_share=margin,
        multiplier=multiplier,
    )


def _lengths(inputs: Inputs, scenario: Scenario, choice: Choice) -> tuple[Lengths, Formula]:
    lengths = choice.lengths
    uncached, cached, output = (
        number_exact(part) for part in (lengths.uncached, lengths.cached, lengths.output)
    )
    context = inputs.add(
        "context_tokens", scenario.traffic.context_limit_tokens, "token", "live", "request: longest context"
    )
    output_cell: Any = inputs.add("output_tokens", output, "token", "live", "request, or the default output")
    prompt = uncached + cached
    if scenario.sharing is None and scenario.request.profile is None:
        hits = inputs.add("hit_rate", cached / prompt, "1", "live", "request")
        whole = context - output_cell
        cached_cell, uncached_cell = whole * hits, whole - whole * hits
    else:
        uncached_cell = inputs.add("uncached_input", uncached, "token", "live", "profile")
        cached_cell = inputs.add("cached_input", cached, "token", "solved", "prefix cache at equilibrium")
    shared = number_exact(lengths.shared)
    named = replace(
        lengths,
        uncached=_named(inputs, "uncached_input_tokens", uncached_cell),
        cached=_named(inputs, "cached_input_tokens", cached_cell),
        output=output_cell,
        shared=shared,
        context_limit=cast("Any", context),
    )
    return named, context


def _named(inputs: Inputs, name: str, formula: Formula) -> Any:
    """A computed input under a name of its own."""
    inputs.terms.named[formula.text] = name
    inputs.terms.values[name] = formula.value
    return Formula(name, formula.value, inputs.terms, is_atom=True)


def _objectives(inputs: Inputs, choice: Choice) -> Objectives:
    named = {
        name: inputs.add(f"objective_{name}", limit, "s", "live", "request, or the default objective")
        for name in ("tpot_s", "ttft_s")
        if (limit := getattr(choice.objectives, name)) is not None
    }
    return Objectives(**named)  # type: ignore[arg-type]


def _replica(inputs: Inputs, scenario: Scenario, choice: Choice) -> Replica:
    replica = choice.replica
    calibration = _calibration(inputs, scenario, replica)
    gpu = _gpu(inputs, scenario, replica)
    split: dict[str, Any] = {
        name: inputs.add(
            f"{name}_per_gpu",
            number_exact(getattr(replica, name)),
            "B" if name.endswith("bytes") else "parameters",
            "deployment",
            f"shapes of {scenario.model.id}, split over the layout",
        )
        for name in _SPLIT
    }
    groups: Any = tuple(
        replace(
            group,
            attention=_attention(inputs, group.attention, index, scenario.model.id),
            stage_layers=_layers(inputs, index, number_exact(group.stage_layers)),
        )
        for index, group in enumerate(replica.attention_groups, start=1)
    )
    return replace(replica, calibration=calibration, gpu=gpu, attention_groups=groups, **split)


def _layers(inputs: Inputs, index: int, count: float) -> Any:
    return inputs.add(f"layers_{index}", count, "layers", "deployment", "slowest stage")


def _attention(inputs: Inputs, attention: Any, index: int, model_id: str) -> Any:
    """Widths and heads as cells; what a branch looks at stays a number."""
    named = {
        name: inputs.add(f"{name}_{index}_", value, "1", "fact", f"model {model_id}, {attention.kind} layers")
        for name in _DIMENSIONS
        if isinstance(value := getattr(attention, name, None), int) and not isinstance(value, bool)
    }
    return replace(attention, **named)


def _gpu(inputs: Inputs, scenario: Scenario, replica: Replica) -> GpuSpec:
    source = f"datasheet of {scenario.gpu.id}"
    rates = {
        rate: inputs.add(f"peak_{rate}_flops_per_s", flops, "FLOP/s", "fact", source)
        for rate, flops in replica.gpu.dense_flops_per_s.items()
    }
    named = {
        name: inputs.add(
            f"gpu_{name}", getattr(replica.gpu, name), "B/s" if "per_s" in name else "B", "fact", source
        )
        for name in _GPU
    }
    return replace(replica.gpu, dense_flops_per_s=rates, **named)  # type: ignore[arg-type]


def _calibration(inputs: Inputs, scenario: Scenario, replica: Replica) -> Calibration:
    """Every judgement that is a number, as a live cell with its own source."""
    grounds = {judgement.name: judgement for judgement in scenario.resolved.used}
    named: dict[str, Any] = {}
    for one in fields(Calibration):
        value = getattr(replica.calibration, one.name)
        if isinstance(value, bool | str) or one.name in _FIXED:
            continue
        if isinstance(value, Mapping):
            named[one.name] = dict(_by_dtype(inputs, one.name, value, grounds))
        elif isinstance(value, int | float):
            named[one.name] = inputs.add(
                one.name, value, _unit(one.name), _kind(one.name), _ground(grounds, one.name)
            )
    return replace(replica.calibration, **named)


def _by_dtype(
    inputs: Inputs, name: str, table: Mapping[str, Any], grounds: Mapping[str, Judgement]
) -> Iterator[tuple[str, Any]]:
    for dtype, value in table.items():
        if is_dataclass(value):
            cells = {
                part: inputs.add(
                    f"{name}_{dtype}_{part}",
                    getattr(value, part),
                    _unit(part),
                    "live",
                    _ground(grounds, f"{name}_{part}"),
                )
                for part in _MATRICES
            }
            yield dtype, MatrixEfficiency(**cells)  # type: ignore[arg-type]
        else:
            yield dtype, inputs.add(f"{name}_{dtype}", value, _unit(name), "live", _ground(grounds, name))


def _kind(name: str) -> Kind:
    return "live" if name.endswith(("_share", "_ratio")) else "assumption"


def _unit(name: str) -> str:
    known = (("_bytes_per_s", "B/s"), ("_bytes", "B"), ("_s", "s"), ("_tokens", "token"))
    return next((unit for suffix, unit in known if name.endswith(suffix)), "1")


def _ground(grounds: Mapping[str, Judgement], name: str) -> str:
    judgement = grounds.get(name)
    if judgement is None:
        return "calibration"
    points = f", {judgement.points} points" if judgement.points else ""
    return f"{judgement.kind} of {judgement.dated}{points}; source {judgement.source_id}"


def _basis(scenario: Scenario, judgement: str, parameter: str) -> str:
    if getattr(scenario.request, parameter) is not None:
        return "request"
    return _ground({one.name: one for one in scenario.assumptions}, judgement)
