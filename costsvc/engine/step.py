"""One iteration of the serving loop, in seconds: decode tokens and prefill tokens through all layers."""

from dataclasses import dataclass

import numpy as np

from costsvc.engine import operators
from costsvc.engine.attention import Floats, decode_visible_tokens, mean_visible_tokens
from costsvc.engine.memory import ACTIVATION_VALUE_BYTES
from costsvc.engine.parameters import distinct_experts
from costsvc.engine.replica import AttentionGroup, ExpertGroup, Replica
from costsvc.engine.specs import DtypeSpec

DISPATCH_VALUE_BYTES = 1


@dataclass(frozen=True, slots=True)
class Batch:
    """What one iteration runs, over the whole replica.

    `decode_first` to `decode_last` are the contexts that decode tokens see, uniform in between; likewise the
    positions of prefill tokens. `sampled` tokens pass the head. [token]
    """

    decode: Floats
    decode_first: Floats
    decode_last: Floats
    prefill: Floats
    prefill_first: Floats
    prefill_last: Floats
    sampled: Floats


@dataclass(frozen=True, slots=True)
class StepTime:
    """Terms of one iteration; their sum is its time. [s]"""

    projections_s: Floats
    ffn_s: Floats
    experts_s: Floats
    decode_attention_s: Floats
    prefill_attention_s: Floats
    communication_s: Floats
    head_s: Floats
    layer_overhead_s: Floats
    host_overhead_s: Floats

    @property
    def total_s(self) -> Floats:
        """All terms. [s]"""
        dense = self.projections_s + self.ffn_s + self.experts_s + self.head_s
        attention = self.decode_attention_s + self.prefill_attention_s
        return dense + attention + self.communication_s + self.layer_overhead_s + self.host_overhead_s


def step_time(replica: Replica, batch: Batch) -> StepTime:
    """Time of one iteration.

    With pipeline stages the batch runs as `pp` micro-batches; a sequence gets its next token when all have
    passed, so the iteration takes `pp` times the slowest stage, and a bubble more. With attention
    data-parallelism each rank has its share of the sequences, and experts see the tokens of all.
    `slowdown_ratio` is what is left unexplained of this card, stack and dtype, on all terms alike.
    """
    ranks = replica.dp * replica.pp
    pp = replica.pp + replica.calibration.pipeline_bubble_share * (replica.pp - 1)
    tokens = (batch.decode + batch.prefill) / ranks
    calibration, gpu = replica.calibration, replica.gpu
    plan = replica.deployments[0].weights
    decode_s, prefill_s = _attention(replica, batch)

    def dense_s(rows: Floats, parameters: Floats, dtype: DtypeSpec) -> Floats:
        efficiency = operators.matrix_efficiency(calibration, gpu, dtype, experts=False)
        return operators.gemm_s(rows, parameters, dtype, gpu, efficiency)

    busy = np.where(tokens > 0, 1.0, 0.0)
    slow = pp * calibration.slowdown_ratio
    return StepTime(
        projections_s=slow * dense_s(tokens, replica.attention_parameters, plan.attention),
        ffn_s=slow * (dense_s(tokens, replica.ffn_parameters, plan.ffn) + _router(replica, tokens)),
        experts_s=slow * _experts(replica, tokens * replica.dp),
        decode_attention_s=slow * decode_s,
        prefill_attention_s=slow * prefill_s,
        communication_s=slow * _communication(replica, tokens),
        head_s=slow * dense_s(batch.sampled / ranks, replica.head_parameters, plan.embedding),
        layer_overhead_s=slow * replica.stage_layers * calibration.layer_overhead_s * busy,
        host_overhead_s=calibration.slowdown_ratio * _host(replica, batch),
    )


def _router(replica: Replica, tokens: Floats) -> Floats:
    if not replica.expert_groups:
        return 0.0
    dtype = replica.deployments[0].weights.other
    efficiency = operators.matrix_efficiency(replica.calibration, replica.gpu, dtype, experts=False)
    return operators.gemm_s(tokens, replica.router_parameters, dtype, replica.gpu, efficiency)


def _experts(replica: Replica, tokens: Floats) -> Floats:
    """Routed experts of all MoE layers of a stage; the busiest rank counts."""
    total: Floats = 0.0
    for group in replica.expert_groups:
        total = total + group.stage_layers * _expert_layer(replica, group, tokens)
    return total


def _expert_layer(replica: Replica, group: ExpertGroup, tokens: Floats) -> Floats:
    dtype = replica.deployments[0].weights.experts
    touched = distinct_experts(group.ffn, tokens)
    efficiency = operators.matrix_efficiency(replica.calibration, replica.gpu, dtype, experts=True)
    per_expert = tokens * group.ffn.experts_per_token / np.maximum(touched, 1.0)
    skew = np.where(replica.ep > 1, replica.calibration.expert_skew_ratio, 1.0)
    parameters = skew * touched * group.expert_parameters / (replica.tp * replica.dp)
    return operators.experts_s(per_expert, parameters, dtype, replica.gpu, efficiency)


def _attention(replica: Replica, batch: Batch) -> tuple[Floats, Floats]:
    """Decode and prefill attention of all layers of a stage."""
    if not replica.deployments[0].kv_cache:
        batch = _recomputed(batch)
    decode_s: Floats = 0.0
    prefill_s: Floats = 0.0
    for group in replica.attention_groups:
        decode_s = decode_s + group.stage_layers * _decode_layer(replica, group, batch)
        prefill_s = prefill_s + group.stage_layers * _prefill_layer(replica, group, batch)
    return decode_s, prefill_s


def _recomputed(batch: Batch) -> Batch:
    """Without a cache, what would be decode attention is inside the recomputed prefix."""
    return Batch(0.0, 0.0, 1.0, batch.prefill, batch.prefill_first, batch.prefill_last, batch.sampled)


def _decode_layer(replica: Replica, group: AttentionGroup, batch: Batch) -> Floats:
    sequences = batch.decode / (replica.dp * replica.pp)
    visible = decode_visible_tokens(group.attention, batch.decode_first, batch.decode_last)
    context = (batch.decode_first + batch.decode_last) / 2
    values = group.attention.read_values(visible, context) * group.kv_share
    state = 2.0 * group.attention.state_bytes() / replica.tp
    read_bytes = sequences * (values * replica.kv.value_bytes + state)
    flops = sequences * group.attention.decode_flops(visible, context) / replica.tp
    return operators.attention_decode_s(read_bytes, flops, replica.gpu, replica.calibration, replica.kv)


def _prefill_layer(replica: Replica, group: AttentionGroup, batch: Batch) -> Floats:
    tokens = batch.prefill / (replica.dp * replica.pp)
    visible = mean_visible_tokens(group.attention, batch.prefill_first, batch.prefill_last)
    context = (batch.prefill_first + batch.prefill_last) / 2
    flops = tokens * group.attention.prefill_flops(visible, context) / replica.tp
    held = group.attention.kv_values(batch.prefill_last) * group.kv_share * replica.kv.value_bytes
    read_bytes = np.where(tokens > 0, held, 0.0)
    if not group.attention.keeps_tokens:
        return operators.scan_prefill_s(flops, replica.gpu, replica.calibration)
    return operators.attention_prefill_s(flops, read_bytes, visible, replica.gpu, replica.calibration)


def _communication(replica: Replica, tokens: Floats) -> Floats:
    """Two all-reduces a layer over TP; with attention data-parallelism the experts' one is two all-to-alls.

    Tokens are dispatched in the experts' own width where that is 8 bit, and combined in 16 bit;
    `exchange_overlap_share` of both hides behind another micro-batch's compute.
    """
    gpu, calibration, model = replica.gpu, replica.calibration, replica.model
    message = tokens * model.hidden_size * ACTIVATION_VALUE_BYTES
    reduce_s = operators.all_reduce_s(message, replica.tp, gpu, calibration)
    spread = np.where(replica.dp > 1, replica.moe_layers, 0.0)
    total = (2.0 * replica.stage_layers - spread) * reduce_s
    if replica.expert_groups:
        chosen = replica.expert_groups[0].ffn.experts_per_token
        ranks = replica.tp * replica.dp
        width = min(replica.deployments[0].weights.experts.value_bytes, ACTIVATION_VALUE_BYTES)
        narrow = max(width, DISPATCH_VALUE_BYTES) / ACTIVATION_VALUE_BYTES
        ways = (message / replica.tp * narrow, message / replica.tp)
        exchange_s = sum(operators.all_to_all_s(sent, ranks, chosen, gpu, calibration) for sent in ways)
        total = total + (1.0 - calibration.exchange_overlap_share) * spread * exchange_s
    latency_s, bytes_per_s = operators.link(replica.tp * replica.pp, gpu, calibration)
    hop_s = np.where(replica.pp > 1, latency_s + message / bytes_per_s, 0.0)
    return total + hop_s


def _host(replica: Replica, batch: Batch) -> Floats:
    """Scheduling, sampling and detokenising: once a step, and per token of each engine process."""
    calibration = replica.calibration
    prompts = np.maximum(batch.sampled - batch.decode, 0.0) if replica.deployments[0].kv_cache else 0.0
    per_rank = calibration.token_overhead_s * batch.sampled + calibration.prompt_overhead_s * prompts
    return calibration.step_overhead_s + per_rank / replica.dp
