"""What the engine is told: frozen inputs, in SI units. Every number's name ends in its unit.

The catalog builds them (`db/snapshot.py`), tests build them by hand; nothing here reads or writes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from costsvc.engine.attention import Attention

Mode: TypeAlias = Literal["colocated", "disaggregated"]
Allocation: TypeAlias = Literal["paged", "contiguous"]
MemoryRule: TypeAlias = Literal["of-total", "of-free", "static"]
WindowRule: TypeAlias = Literal["window", "grouped", "full"]
Attribution: TypeAlias = Literal["marginal", "step", "pools"]
Proposer: TypeAlias = Literal["draft-model", "mtp", "ngram"]


@dataclass(frozen=True, slots=True)
class DtypeSpec:
    """A storage type of weights or cache, with the rates it can compute at.

    Parameters
    ----------
    value_bytes : float
        Bytes per value, scales and zeros included. [B]
    arithmetic : tuple of str
        Peak rates that serve it, best first, as named in `GpuSpec.dense_flops_per_s`. Where the card has
        none but the last, the weights run weight-only at that rate.
    """

    id: str
    value_bytes: float
    arithmetic: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightPlan:
    """The storage type of each class of tensors: a release or an engine rarely stores all alike."""

    id: str
    attention: DtypeSpec
    ffn: DtypeSpec
    experts: DtypeSpec
    embedding: DtypeSpec
    other: DtypeSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseFfn:
    """A feed-forward block: two matrices, three when gated."""

    intermediate_size: int
    gated: bool = True
    bias: bool = False
    kind: Literal["dense"] = "dense"


@dataclass(frozen=True, slots=True, kw_only=True)
class MoeFfn:
    """Routed experts, of which each token visits `experts_per_token`, beside shared ones.

    `latent_size` is the narrower width that routed experts work in where the model has one.
    """

    experts: int
    experts_per_token: int
    intermediate_size: int
    shared_intermediate_size: int = 0
    latent_size: int | None = None
    gated: bool = True
    bias: bool = False
    router_bias: bool = False
    kind: Literal["moe"] = "moe"


Ffn: TypeAlias = DenseFfn | MoeFfn


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerGroup:
    """Layers of one shape: a mixer, a feed-forward block, or both."""

    attention: Attention | None
    ffn: Ffn | None
    norm_vectors: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class RopeScaling:
    """How a configuration stretches rotary positions beyond its original ones.

    Parameters
    ----------
    original_tokens : int
        Positions before scaling (`original_max_position_embeddings`). [token]
    factor_ratio : float
        By how much rotary positions are stretched. [1]
    """

    method: Literal["yarn", "llama3", "longrope", "linear", "dynamic"]
    factor_ratio: float
    original_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """A model by its shapes.

    Parameters
    ----------
    groups : tuple of LayerGroup
        The distinct shapes.
    pattern : tuple of int
        Index into `groups` of each layer, in order: pipeline stages cut here.
    position_values, extra_parameters, resident_parameters : int
        Learned positions; text tensors that the shapes do not explain; towers in memory that text never
        computes with (vision, audio). [parameters]
    mtp_parameters : int
        Multi-token-prediction layers in the file; loaded when speculation is on. [parameters]
    rope_scaling : RopeScaling or None
        None where the configuration states none. It changes no time and no byte.
    """

    id: str
    hidden_size: int
    vocab_size: int
    tied_embeddings: bool
    max_context_tokens: int
    groups: tuple[LayerGroup, ...]
    pattern: tuple[int, ...]
    position_values: int = 0
    extra_parameters: int = 0
    resident_parameters: int = 0
    mtp_parameters: int = 0
    rope_scaling: RopeScaling | None = None

    @property
    def layers(self) -> int:
        """Number of layers. [layers]"""
        return len(self.pattern)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSpec:
    """An accelerator by its datasheet, converted once to SI.

    Parameters
    ----------
    usable_memory_bytes : float
        What the driver shows, less than the label. [B]
    dense_flops_per_s : mapping of str to float
        Dense peak by arithmetic type (`bf16`, `fp16`, `fp8`, `int8`, `fp4`, ...); absent where the
        matrix units lack it. [FLOP/s]
    link_bytes_per_s : float
        Scale-up link, one direction. [B/s]
    link_domain_gpus : int
        How many accelerators the scale-up link joins. [GPUs]
    """

    id: str
    generation: str
    memory_bytes: float
    usable_memory_bytes: float
    memory_bytes_per_s: float
    dense_flops_per_s: Mapping[str, float]
    link_bytes_per_s: float
    link_domain_gpus: int
    pcie_bytes_per_s: float
    power_w: float | None = None

    def arithmetic_of(self, dtype: DtypeSpec) -> str | None:
        """The best rate the card has for a storage type, or None where it has no kernel at all."""
        return next((rate for rate in dtype.arithmetic if rate in self.dense_flops_per_s), None)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Draft:
    """The network that proposes tokens: a smaller model, or a multi-token-prediction module of the model.

    `shares_tables`: it uses the embedding and the head of the model that it drafts for. Two are equal where
    they are of the very same model and judgements, so that layouts can be kept by it.
    """

    model: ModelSpec
    weights: WeightPlan
    calibration: "Calibration"
    shares_tables: bool = False

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Draft)
            and other.model is self.model
            and other.calibration is self.calibration
            and (other.weights, other.shares_tables) == (self.weights, self.shares_tables)
        )

    def __hash__(self) -> int:
        return hash((id(self.model), id(self.calibration), self.weights.id, self.shares_tables))


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """Speculative decoding: `draft_tokens` are proposed and verified in one step.

    Parameters
    ----------
    draft_tokens : int
        Proposed at once. [token]
    acceptance_share : float
        Probability that a proposed token is accepted where all before it were. [1]
    draft : Draft or None
        None where proposals are looked up in the text.
    """

    proposer: Proposer
    draft_tokens: int
    acceptance_share: float
    draft: Draft | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """How one replica is laid out.

    `dp` is attention data-parallelism: each of `dp` ranks of `tp` accelerators holds its own sequences
    whole; experts spread over all `tp * dp`, in `ep` groups. `ep` divides `tp * dp`.
    """

    tp: int
    pp: int
    ep: int
    dp: int
    weights: WeightPlan
    kv: DtypeSpec
    mode: Mode = "colocated"
    allocation: Allocation = "paged"
    kv_cache: bool = True
    speculation: Speculation | None = None

    @property
    def gpus(self) -> int:
        """Accelerators of one replica (of the decode pool where disaggregated). [GPUs]"""
        return self.tp * self.pp * self.dp


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """One class of requests.

    Parameters
    ----------
    uncached_input_tokens, cached_input_tokens, output_tokens : float
        Means of I, K and O. [token]
    shared_cached_tokens : float
        The part of K whose blocks are held once per replica, not once per sequence. [token]
    input_cv, output_cv : float
        Coefficient of variation of the whole prompt and of the output; 0 for equal lengths. [1]
    length_correlation : float
        Correlation of the two; long prompts with long outputs are met more often in flight. [1]
    context_limit_tokens : float
        Longest context a sequence may reach: what contiguous allocation reserves and what must fit. [token]
    """

    uncached_input_tokens: float
    cached_input_tokens: float
    output_tokens: float
    context_limit_tokens: float
    shared_cached_tokens: float = 0.0
    input_cv: float = 0.0
    output_cv: float = 0.0
    length_correlation: float = 0.0

    @property
    def input_tokens(self) -> float:
        """The whole prompt, I + K. [token]"""
        return self.uncached_input_tokens + self.cached_input_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Objectives:
    """Latency a deployment must keep, at the stated utilization; None where nothing is asked."""

    tpot_s: float | None = None
    ttft_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixEfficiency:
    """How near matrix products of one arithmetic type come to their two roofs, on one card and stack.

    `mfu_share` and `mbu_share` are reached at many tokens and large weights; `half_tokens` is where the
    compute share has half of that. [1], [1], [token]
    """

    mfu_share: float
    mbu_share: float
    half_tokens: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Judgements for one (accelerator, stack, dtype), resolved from `catalog/calibration`. No defaults here.

    Shares are of a peak, in (0, 1]. `*_s` are seconds, `*_bytes` bytes per accelerator. `memory_rule` says what
    `memory_utilization_share` is a share of: all memory, with everything inside (vLLM); what is free after
    all else (TensorRT-LLM); or all memory, for weights and cache alone (SGLang). `window_rule` says what sliding
    and chunked layers hold: their window, the same in padded layer groups with chunks whole, or everything.
    `prefix_match_tokens` is what prefix hits are multiples of: a block, or one token.
    """

    gemm: Mapping[str, MatrixEfficiency]
    moe: Mapping[str, MatrixEfficiency]
    weight_only_mfu_share: float
    attention_decode_mbu_share: Mapping[str, float]
    attention_decode_mfu_share: float
    attention_decode_floor_s: float
    attention_prefill_mfu_share: float
    attention_prefill_half_tokens: float
    expert_skew_ratio: float
    expert_evenness_ratio: float
    link_efficiency_share: float
    link_latency_s: float
    pcie_efficiency_share: float
    pcie_latency_s: float
    node_gpus: float
    network_bytes_per_s: float
    network_latency_s: float
    exchange_latency_s: float
    exchange_overlap_share: float
    pipeline_bubble_share: float
    prompt_gathering_share: float
    step_overhead_s: float
    parallel_overhead_s: float
    layer_overhead_s: float
    eager_layer_s: float
    captured_tokens: float
    token_overhead_s: float
    prompt_overhead_s: float
    slowdown_ratio: float
    ttft_floor_s: float
    ttft_steps_ratio: float
    ttft_prompt_ratio: float
    ttft_burst_share: float
    ttft_wave_share: float
    memory_utilization_share: float
    runtime_bytes: float
    collective_buffer_bytes: float
    switchless_buffer_bytes: float
    activation_ratio: float
    step_token_budget_tokens: float
    max_sequences: float
    sampled_rows: float
    block_tokens: float
    prefix_match_tokens: float
    resident_quantile_sigmas: float
    flood_tokens: float
    flood_least_sequences: float
    memory_rule: MemoryRule
    reserves_full_length: bool
    window_rule: WindowRule
