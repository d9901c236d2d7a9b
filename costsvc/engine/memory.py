"""Memory of one accelerator: what is taken, what is left for the cache, how many sequences that holds."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from costsvc.engine.attention import Attention, ChunkedAttention, Floats, FullAttention, SlidingAttention
from costsvc.engine.parameters import matrices
from costsvc.engine.replica import Column, Replica, once_per_replica
from costsvc.engine.specs import DenseFfn, LayerGroup, ModelSpec, WindowRule

ACTIVATION_VALUE_BYTES = 2
LOGIT_BYTES = 8
BRIDGED_GPUS = 2


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """Terms of one accelerator of the fullest stage, per layout. [B]

    `reserved_bytes` is what the stack leaves unused by its rule. `kv_bytes` is what is left for the cache and
    may be negative: then the weights alone do not fit.
    """

    usable_bytes: Column
    reserved_bytes: Column
    weight_bytes: Column
    activation_bytes: Column
    runtime_bytes: Column
    collective_bytes: Column
    kv_bytes: Column


@dataclass(frozen=True)
class Lengths:
    """Tokens of requests, in arrays that broadcast with the layouts.

    `uncached`, `cached` and `output` are means of I, K and O; `shared` is the part of K held once.
    `prompt_unit` is how many uncached tokens carry what is paid once a prompt; None is the prompt's own.
    """

    uncached: Floats
    cached: Floats
    output: Floats
    shared: Floats
    input_cv: float
    output_cv: float
    context_limit: Floats
    prompt_unit: Floats | None = None
    length_correlation: float = 0.0

    @property
    def per_prompt(self) -> Floats:
        """Uncached tokens that carry what is paid once a prompt. [token]"""
        return self.uncached if self.prompt_unit is None else self.prompt_unit

    @cached_property
    def prompt(self) -> Floats:
        """I + K. [token]"""
        return self.uncached + self.cached

    @cached_property
    def long_prompt(self) -> Floats:
        r"""Mean prompt of a request in flight, :math:`E[I O]/E[O]`, by the correlation of the two. [token]"""
        return self.prompt * (1.0 + self.length_correlation * self.input_cv * self.output_cv)

    @property
    def prefill_spread_ratio(self) -> float:
        r"""How much farther a mean prompt token sees than in equal prompts, :math:`E[I^2]/E[I]^2`. [1]"""
        return 1.0 + self.input_cv**2

    @cached_property
    def long_output(self) -> Floats:
        r"""Mean output of a request in flight, :math:`E[O^2]/E[O]`: long outputs are met more often. [token]"""
        return self.output * (1.0 + self.output_cv**2)

    @cached_property
    def resident(self) -> Floats:
        r"""Mean tokens a running sequence holds, :math:`E[I O]/E[O] + E[O^2]/2E[O]`. [token]"""
        return self.long_prompt + self.long_output / 2

    @cached_property
    def resident_deviation(self) -> Floats:
        """Standard deviation of the same, lengths log-normal and independent. [token]"""
        spread = 1.0 + self.output_cv**2
        variance = (self.prompt * self.input_cv) ** 2 + self.output**2 * (spread**3 / 3 - spread**2 / 4)
        return np.sqrt(variance)


def kv_cache_bytes(model: ModelSpec, context_tokens: Floats, kv_value_bytes: float) -> Floats:
    r"""Cache of one sequence over all layers, as an ideal engine holds it.

    .. math:: B_{kv}(S) = \sum_{\mathrm{layers}} b \, v_l(S) + s_l

    Parameters
    ----------
    context_tokens : float or array
        Prompt plus generated tokens :math:`S`. [token]
    kv_value_bytes : float
        Bytes per cached value :math:`b`. [B]

    Returns
    -------
    float or array
        [B]

    Examples
    --------
    >>> from costsvc.engine.specs import LayerGroup
    >>> layer = LayerGroup(attention=FullAttention(query_heads=64, kv_heads=8, head_dim=128), ffn=None)
    >>> llama = ModelSpec(
    ...     id="llama-3-70b", hidden_size=8192, vocab_size=128256, tied_embeddings=False,
    ...     max_context_tokens=8192, groups=(layer,), pattern=(0,) * 80,
    ... )
    >>> kv_cache_bytes(llama, 1, 2)
    327680.0
    """
    total: Floats = 0.0
    for index, group in enumerate(model.groups):
        if group.attention is not None:
            values = group.attention.kv_values(context_tokens) * kv_value_bytes
            layout = group.attention.layout_bytes(kv_value_bytes) * context_tokens
            held = values + layout + group.attention.state_bytes()
            total = total + model.pattern.count(index) * held
    return total


def layer_cache_bytes(
    attention: Attention,
    tokens: Floats,
    kv_share: Floats,
    kv_value_bytes: float,
    rule: WindowRule,
    *,
    in_flight_tokens: float = 0.0,
) -> Floats:
    """What grows with a sequence in one layer's cache on one rank, as an engine holds it. [B]

    Parameters
    ----------
    kv_share : float or array
        The rank's share of the cache. [1]
    rule : WindowRule
        What sliding and chunked layers hold.
    in_flight_tokens : float
        Tokens of a step that stand beside the window while a prompt is admitted. [token]
    """
    values: Floats = attention.kv_values(tokens)
    if isinstance(attention, ChunkedAttention) and rule != "window":
        values = attention.kv_values_per_token * tokens
    elif isinstance(attention, SlidingAttention):
        window = np.inf if rule == "full" else attention.window_tokens + in_flight_tokens
        values = attention.kv_values_per_token * np.minimum(tokens, window)
    held = values * kv_value_bytes
    layout_bytes = attention.layout_bytes(kv_value_bytes)
    return (held + layout_bytes * tokens if layout_bytes else held) * kv_share


def sequence_bytes(replica: Replica, tokens: Floats) -> Floats:
    """Cache of one sequence on one accelerator of the fullest stage, a draft's own included. [B]"""
    return _sequence_bytes(replica, tokens, _cache_shares)


def one_sequence_bytes(replica: Replica, tokens: float) -> float:
    """The same of one layout and one length, without arrays. [B]"""
    return float(_sequence_bytes(replica, tokens, _one_cache_shares))


Shares: TypeAlias = tuple[Floats, list[Floats], Floats]
"""What a sequence takes however short it is, shares of each attention group's cache, and of all that. [B], [1], [1]"""


def _sequence_bytes(replica: Replica, tokens: Floats, shares_of: Callable[[Replica], Shares]) -> Floats:
    (total, shares, share_of_all), kv_value_bytes = shares_of(replica), replica.kv.value_bytes
    for group, share in zip(replica.attention_groups, shares, strict=True):
        held = layer_cache_bytes(
            group.attention, tokens, share, kv_value_bytes, replica.calibration.window_rule
        )
        total = total + held
    if replica.draft is not None:
        total = total + _sequence_bytes(replica.draft, tokens, shares_of)
    return total * share_of_all


@once_per_replica
def _cache_shares(replica: Replica) -> Shares:
    total: Floats = 0.0
    for group in replica.attention_groups:
        total = total + group.cache_layers * group.attention.state_bytes() / replica.tp
    # Without a cache one layer's keys and values are there at a time.
    share_of_all: Floats = 1.0 if replica.deployments[0].kv_cache else 1.0 / replica.stage_layers
    return total, [group.cache_layers * group.kv_share for group in replica.attention_groups], share_of_all


@once_per_replica
def _one_cache_shares(replica: Replica) -> Shares:
    state_bytes, shares, share_of_all = _cache_shares(replica)
    state, of_all = np.asarray(state_bytes).item(), np.asarray(share_of_all).item()
    return state, [np.asarray(share).item() for share in shares], of_all


@once_per_replica
def memory_budget(replica: Replica) -> MemoryBudget:
    """What one accelerator of the fullest stage holds, per layout."""
    calibration = replica.calibration
    ones = np.ones_like(replica.tp)
    usable = replica.gpu.usable_memory_bytes * ones
    activation = activation_bytes(replica)
    runtime = calibration.runtime_bytes * ones
    collective = np.where(replica.tp * replica.dp > 1, _collective_bytes(replica), 0.0)
    taken = replica.weight_bytes + activation + runtime + collective
    share = calibration.memory_utilization_share
    kv = {
        "of-total": usable * share - taken,
        "of-free": (usable - taken) * share,
        "static": usable * share - replica.weight_bytes,
    }[calibration.memory_rule]
    return MemoryBudget(
        usable_bytes=usable,
        reserved_bytes=usable - taken - kv,
        weight_bytes=replica.weight_bytes,
        activation_bytes=activation,
        runtime_bytes=runtime,
        collective_bytes=collective,
        kv_bytes=kv,
    )


def _collective_bytes(replica: Replica) -> float:
    """Buffers of a rank that talks to others: more behind a switch, which reduces in memory of its own. [B]"""
    calibration = replica.calibration
    if replica.gpu.link_domain_gpus > BRIDGED_GPUS:
        return calibration.collective_buffer_bytes
    return calibration.switchless_buffer_bytes


def activation_bytes(replica: Replica) -> Column:
    """Peak of intermediate tensors while a full step runs, and logits of a full batch, plain and sorted. [B]"""
    calibration, model = replica.calibration, replica.model
    widths = [_widest_values(group, model, replica.tp) for group in model.groups]
    values = calibration.step_token_budget_tokens * (2.0 * model.hidden_size + np.max(widths, axis=0))
    logits = calibration.sampled_rows * replica.verified_tokens * model.vocab_size * LOGIT_BYTES
    return np.asarray(calibration.activation_ratio * (values * ACTIVATION_VALUE_BYTES + logits))


def sequences_that_fit(replica: Replica, budget: MemoryBudget, lengths: Lengths) -> Floats:
    r"""Sequences of a replica that the cache memory holds, continuous.

    Paged allocation fills on the lengths in flight: with mean :math:`m` and deviation :math:`\sigma` bytes,
    :math:`B m + z \sigma \sqrt{B} \le M`. Contiguous allocation and engines that never evict reserve the end.
    """
    calibration = replica.calibration
    available = np.maximum(budget.kv_bytes, 0.0)
    if replica.deployments[0].allocation == "contiguous":
        return replica.dp * available / sequence_bytes(replica, lengths.context_limit)
    padding = calibration.block_tokens / 2 + (replica.verified_tokens - 1.0)
    if calibration.reserves_full_length:
        final = lengths.long_prompt + lengths.long_output + padding
        return replica.dp * available / sequence_bytes(replica, final)
    held = lengths.resident + padding
    mean = sequence_bytes(replica, held)
    once = np.where(lengths.shared > 0, mean - sequence_bytes(replica, held - lengths.shared), 0.0)
    deviation = sequence_bytes(replica, held + lengths.resident_deviation) - mean
    slack = calibration.resident_quantile_sigmas * deviation
    alone = mean - once
    root = (-slack + np.sqrt(slack**2 + 4 * alone * np.maximum(available - once, 0.0))) / (2 * alone)
    fit: Floats = replica.dp * root**2
    return fit


def longest_context_tokens(replica: Replica, budget: MemoryBudget) -> Column:
    """Longest context of which one sequence fits, per layout; 0 where nothing fits. [token]

    Bisection over the monotone `sequence_bytes`, to one token.
    """
    low = np.zeros_like(replica.tp)
    high = np.full_like(replica.tp, float(replica.model.max_context_tokens))
    while np.any(high - low > 1):
        middle = np.floor((low + high) / 2)
        fits = sequence_bytes(replica, middle) <= budget.kv_bytes
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return np.where(sequence_bytes(replica, high) <= budget.kv_bytes, high, low)


def wasted_share(reserved_tokens: Floats, used_tokens: Floats) -> Floats:
    """Share of reserved cache that holds no token. [1]

    Examples
    --------
    >>> round(wasted_share(8192, 800), 3), round(wasted_share(32768, 1000), 3)
    (0.902, 0.969)
    """
    return 1.0 - used_tokens / reserved_tokens


def _widest_values(group: LayerGroup, model: ModelSpec, tp: Column) -> Column:
    """Values per token of the widest intermediate of a layer on one rank."""
    attention = group.attention
    mixer = np.zeros_like(tp)
    if isinstance(attention, FullAttention):
        heads = attention.query_heads + 2 * attention.kv_heads
        mixer = heads * attention.head_dim / tp
    elif attention is not None:
        width = attention.sharded_parameters(model.hidden_size) / model.hidden_size
        mixer = np.minimum(width, 4.0 * model.hidden_size) / tp
    if group.ffn is None:
        return mixer
    inner = (matrices(group.ffn) - 1) * group.ffn.intermediate_size / tp
    if isinstance(group.ffn, DenseFfn):
        return np.maximum(mixer, inner)
    routed = group.ffn.experts_per_token * (inner + (group.ffn.latent_size or model.hidden_size))
    return np.maximum(mixer, routed)
