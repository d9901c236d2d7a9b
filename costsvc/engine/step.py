"""One iteration of the serving loop, in seconds: decode tokens and prefill tokens through all layers."""

from dataclasses import dataclass, replace

import numpy as np

from costsvc.engine import operators
from costsvc.engine.attention import Floats, decode_visible_tokens, mean_visible_tokens
from costsvc.engine.formulas import busiest_prefill, launched_s, tokens_each
from costsvc.engine.memory import ACTIVATION_VALUE_BYTES
from costsvc.engine.operators import Line, Roof
from costsvc.engine.parameters import distinct_experts, spread_ratio
from costsvc.engine.replica import AttentionGroup, Column, ExpertGroup, Replica, once_per_replica
from costsvc.engine.search import Array, Network
from costsvc.engine.specs import DtypeSpec, MoeFfn

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
    draft_s: Floats = 0.0

    @property
    def accelerator_s(self) -> Floats:
        """All terms of the model itself but the host's. [s]"""
        dense = self.projections_s + self.ffn_s + self.experts_s + self.head_s
        attention = self.decode_attention_s + self.prefill_attention_s
        return dense + attention + self.communication_s + self.layer_overhead_s

    @property
    def total_s(self) -> Floats:
        """All terms. [s]"""
        return self.accelerator_s + self.host_overhead_s + self.draft_s


def step_time(replica: Replica, batch: Batch) -> StepTime:
    """Time of one iteration, by its terms."""
    return StepPlan(replica, batch).terms(batch.decode, batch.prefill, batch.sampled)


class StepPlan:
    r"""The iterations of a replica whose tokens see given contexts, ready for many numbers of tokens.

    With pipeline stages the batch runs as `pp` micro-batches; a sequence gets its next token when all have
    passed, so the iteration takes `pp` times the slowest stage, and a bubble more. With attention
    data-parallelism each rank has its share of the sequences, but a prompt lies whole on one and all wait for it;
    experts see the tokens of all.
    `slowdown_ratio` is what is left unexplained of this card, stack and dtype, on all terms alike.

    Steps with prompts of more tokens than a captured graph holds are launched layer by layer: small models wait
    for the host, :math:`\sqrt{t^2 + t_l^2}` for :math:`t` of kernels and :math:`t_l` of launches. Prompts come
    unevenly, so of steps with fewer, part is launched: as great a part as they are of the graph's tokens.

    Where tokens are proposed, each sequence brings them along to be verified: its cache is read once for all.
    `draft` passes once a token, launched without the host in between, and prefills the same prompts.

    Parameters
    ----------
    contexts : Batch
        Its positions count; its numbers of tokens do not.
    """

    def __init__(self, replica: Replica, contexts: Batch) -> None:
        self._of = _of_replica(replica)
        self._replica = replica
        self._prompt_tokens = np.minimum(
            contexts.prefill_last - contexts.prefill_first, replica.calibration.step_token_budget_tokens
        )
        slow = self._of.slowdown_ratio
        decode, prefill = Line(0.0, 0.0), list[Roof]()
        for group in replica.attention_groups:
            layers = slow * group.stage_layers
            decode = decode + _decode_layer(replica, group, contexts).times(layers)
            prefill.append(_prefill_layer(replica, group, contexts).times(layers))
        self._decode = decode
        self._prefill = prefill
        self.draft = None if replica.draft is None else StepPlan(replica.draft, contexts)

    def terms(self, decode: Floats, prefill: Floats, sampled: Floats) -> StepTime:
        """Each term of an iteration with so many tokens in the whole replica.

        Parameters
        ----------
        decode, prefill, sampled : float or array
            Decode and prompt tokens, and those that pass the head. [token]
        """
        of = self._of
        proposed = decode * (of.verified_tokens - 1.0)
        mean = (decode + proposed + prefill) * of.rank_share
        rows = busiest_prefill(prefill, of.rank_share, of.dp, self._prompt_tokens)
        tokens = (decode + proposed) * of.rank_share + rows
        attention: Floats = 0.0
        for roof in self._prefill:
            attention = attention + roof.seconds(rows)
        kernels = StepTime(
            projections_s=of.projections.seconds(tokens),
            ffn_s=of.ffn.seconds(tokens) + (of.router.seconds(tokens) if of.router else 0.0),
            experts_s=of.experts_s(mean),
            decode_attention_s=self._decode.seconds(decode * of.rank_share),
            prefill_attention_s=attention,
            communication_s=of.communication.seconds(tokens),
            head_s=of.head.seconds((sampled + proposed) * of.rank_share),
            layer_overhead_s=np.where(tokens > 0, of.layer_overhead_s, 0.0),
            host_overhead_s=0.0,
            draft_s=0.0,
        )
        launched = launched_s(kernels.total_s, rows, of.launches_s, of.captured_tokens)
        waiting_s = launched - kernels.total_s
        host_s = waiting_s + of.host_s(decode, sampled)
        return replace(kernels, host_overhead_s=host_s, draft_s=self._draft_s(decode, prefill))

    def _draft_s(self, decode: Floats, prefill: Floats) -> Floats:
        if self.draft is None:
            return 0.0
        passes_s = (self._of.verified_tokens - 1.0) * self.draft.terms(decode, 0.0, decode).accelerator_s
        return passes_s + self.draft.terms(0.0, prefill, 0.0).accelerator_s

    def numbers(self, start: int) -> tuple[Network, Array, list[Floats]]:
        """What a row has of this network, from a place in it: what layouts alone say, then what contexts change.

        Returns
        -------
        tuple
            How it is read, (layouts, 1, numbers), and so many numbers more.
        """
        roofs = (number for roof in self._prefill for number in roof.numbers)
        of_contexts = [self._decode.once_s, self._decode.unit_s, self._prompt_tokens, *roofs]
        network = Network(start, len(self._of.roofs), len(self._of.experts), len(self._prefill))
        return network, _fixed_numbers(self._replica), of_contexts


@dataclass(frozen=True, slots=True, kw_only=True)
class _Experts:
    """Routed experts of the layers that share one block: `roof` is of one touched expert.

    The busiest rank has `skew_ratio` times its share of the tokens, and never more than its experts.
    """

    ffn: MoeFfn
    roof: Roof
    skew_ratio: Floats
    evenness_ratio: Floats

    def seconds(self, tokens: Floats) -> Floats:
        """All touched experts of the busiest rank. [s]"""
        busiest = tokens * self.skew_ratio
        touched = distinct_experts(self.ffn, busiest, self.evenness_ratio)
        return touched * self.roof.seconds(tokens_each(busiest, self.ffn.experts_per_token, touched))

    @property
    def numbers(self) -> tuple[Floats, ...]:
        """As `search.Network` has them."""
        ffn, evenness = self.ffn, self.evenness_ratio
        facts = float(ffn.experts), float(ffn.experts_per_token), spread_ratio(ffn, evenness)
        return *facts, *self.roof.numbers, self.skew_ratio, evenness


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfReplica:
    """What the terms need that no context changes. Slowness and pipeline stages are inside, but for the host."""

    slowdown_ratio: Column
    rank_share: Column
    dp: Column
    projections: Roof
    ffn: Roof
    router: Roof | None
    head: Roof
    experts: tuple[_Experts, ...]
    communication: Line
    layer_overhead_s: Floats
    launches_s: Floats
    captured_tokens: float
    step_overhead_s: Floats
    sampled_s: Floats
    prompt_s: Floats
    verified_tokens: float
    yielded_tokens: float

    @property
    def roofs(self) -> list[Roof]:
        """The matrix products that all tokens pass."""
        return [self.projections, self.ffn, *([self.router] if self.router else [])]

    def experts_s(self, tokens: Floats) -> Floats:
        """Routed experts of all MoE layers of a stage; the busiest rank counts. [s]"""
        total: Floats = 0.0
        for group in self.experts:
            total = total + group.seconds(tokens * self.dp)
        return total

    @property
    def numbers(self) -> list[Floats]:
        """What stands in a row before contexts change it: `STEPS`, roofs, experts."""
        steps: list[Floats] = [
            self.rank_share,
            self.dp,
            self.verified_tokens,
            self.yielded_tokens,
            self.communication.once_s,
            self.communication.unit_s,
            self.layer_overhead_s,
            self.captured_tokens,
            self.launches_s,
            self.step_overhead_s,
            self.sampled_s,
            self.prompt_s,
        ]
        roofs = (number for roof in (*self.roofs, self.head) for number in roof.numbers)
        return [*steps, *roofs, *(number for block in self.experts for number in block.numbers)]

    def host_s(self, decode: Floats, sampled: Floats) -> Floats:
        """Scheduling, sampling and detokenising: once a step, and per token of each engine process. [s]"""
        yielded = sampled + decode * (self.yielded_tokens - 1.0)
        return self.step_overhead_s + self.sampled_s * yielded + self.prompt_s * (sampled - decode)


@once_per_replica
def _of_replica(replica: Replica) -> _OfReplica:
    calibration, gpu, plan = replica.calibration, replica.gpu, replica.deployments[0].weights
    slow = (replica.pp + calibration.pipeline_bubble_share * (replica.pp - 1)) * calibration.slowdown_ratio

    def dense(parameters: Floats, dtype: DtypeSpec) -> Roof:
        efficiency = operators.matrix_efficiency(calibration, gpu, dtype, experts=False)
        return operators.gemm(parameters, dtype, gpu, efficiency).times(slow)

    host = calibration.slowdown_ratio / replica.dp
    workers_s = np.where(replica.tp * replica.pp * replica.dp > 1, calibration.parallel_overhead_s, 0.0)
    return _OfReplica(
        slowdown_ratio=slow,
        rank_share=1.0 / (replica.dp * replica.pp),
        dp=replica.dp,
        projections=dense(replica.attention_parameters, plan.attention),
        ffn=dense(replica.ffn_parameters, plan.ffn),
        router=dense(replica.router_parameters, plan.other) if replica.expert_groups else None,
        head=dense(replica.head_parameters, plan.embedding),
        experts=tuple(_expert_layers(replica, group, slow) for group in replica.expert_groups),
        communication=_communication(replica).times(slow),
        layer_overhead_s=slow * replica.plain_layers * calibration.layer_overhead_s,
        launches_s=replica.pp * replica.plain_layers * calibration.eager_layer_s,
        captured_tokens=calibration.captured_tokens,
        step_overhead_s=calibration.slowdown_ratio * (calibration.step_overhead_s + workers_s),
        sampled_s=host * calibration.token_overhead_s,
        prompt_s=host * calibration.prompt_overhead_s if replica.deployments[0].kv_cache else 0.0,
        verified_tokens=replica.verified_tokens,
        yielded_tokens=replica.tokens_per_step,
    )


def _expert_layers(replica: Replica, group: ExpertGroup, slow: Column) -> _Experts:
    dtype = replica.deployments[0].weights.experts
    efficiency = operators.matrix_efficiency(replica.calibration, replica.gpu, dtype, experts=True)
    skew_ratio = np.where(replica.ep > 1, replica.calibration.expert_skew_ratio, 1.0)
    parameters = group.expert_parameters / (replica.tp * replica.dp)
    roof = operators.gemm(parameters, dtype, replica.gpu, efficiency)
    return _Experts(
        ffn=group.ffn,
        roof=roof.times(slow * group.stage_layers),
        skew_ratio=skew_ratio,
        evenness_ratio=replica.calibration.expert_evenness_ratio,
    )


def _decode_layer(replica: Replica, group: AttentionGroup, contexts: Batch) -> Line:
    """One layer by running sequences of a rank."""
    visible = decode_visible_tokens(group.attention, contexts.decode_first, contexts.decode_last)
    context = (contexts.decode_first + contexts.decode_last) / 2
    values = group.attention.read_values(visible, context) * group.kv_share
    state = (1.0 + replica.verified_tokens) * group.attention.state_bytes() / replica.tp
    read_bytes = values * replica.kv.value_bytes + state
    flops = replica.verified_tokens * group.attention.decode_flops(visible, context) / replica.tp
    return operators.attention_decode(read_bytes, flops, replica.gpu, replica.calibration, replica.kv)


def _prefill_layer(replica: Replica, group: AttentionGroup, contexts: Batch) -> Roof:
    """One layer by prompt tokens of a rank."""
    visible = mean_visible_tokens(group.attention, contexts.prefill_first, contexts.prefill_last)
    context = (contexts.prefill_first + contexts.prefill_last) / 2
    flops = group.attention.prefill_flops(visible, context) / replica.tp
    if not group.attention.keeps_tokens:
        return operators.scan_prefill(flops, replica.gpu, replica.calibration)
    held = group.attention.kv_values(contexts.prefill_last) * group.kv_share * replica.kv.value_bytes
    return operators.attention_prefill(flops, held, visible, replica.gpu, replica.calibration)


def _communication(replica: Replica) -> Line:
    """Two all-reduces a layer over TP; with attention data-parallelism the experts' one is two all-to-alls.

    By tokens of a rank. Tokens are dispatched in the experts' own width where that is 8 bit, and combined in
    16 bit; `exchange_overlap_share` of both hides behind another micro-batch's compute.
    """
    gpu, calibration = replica.gpu, replica.calibration
    token_bytes = float(replica.model.hidden_size * ACTIVATION_VALUE_BYTES)
    spread = np.where(replica.dp > 1, replica.moe_layers, 0.0)
    reduce = operators.all_reduce(replica.tp, gpu, calibration)
    total = _by_tokens(reduce, token_bytes).times(2.0 * replica.stage_layers - spread)
    if replica.expert_groups:
        chosen = replica.expert_groups[0].ffn.experts_per_token
        exchange = operators.all_to_all(replica.tp * replica.dp, chosen, gpu, calibration)
        width = min(replica.deployments[0].weights.experts.value_bytes, ACTIVATION_VALUE_BYTES)
        narrow = max(width, DISPATCH_VALUE_BYTES) / ACTIVATION_VALUE_BYTES
        own_bytes = token_bytes / replica.tp
        both = _by_tokens(exchange, own_bytes * narrow) + _by_tokens(exchange, own_bytes)
        total = total + both.times((1.0 - calibration.exchange_overlap_share) * spread)
    latency_s, bytes_per_s = operators.link(replica.tp * replica.pp, gpu, calibration)
    between = np.where(replica.pp > 1, 1.0, 0.0)
    return total + Line(latency_s, token_bytes / bytes_per_s).times(between)


@once_per_replica
def _fixed_numbers(replica: Replica) -> Array:
    """What stands in the rows of each layout whatever its contexts. (layouts, 1, numbers)"""
    return np.stack(np.broadcast_arrays(replica.tp, *_of_replica(replica).numbers)[1:], axis=-1)


def _by_tokens(per_byte: Line, token_bytes: Floats) -> Line:
    return Line(per_byte.once_s, per_byte.unit_s * token_bytes)
