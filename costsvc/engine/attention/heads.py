"""Attention with heads: full (MHA, GQA, MQA), sliding and chunked."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from costsvc.engine.attention.base import (
    FLOP_PER_MULTIPLY_ADD,
    Floats,
    Mixer,
    SparseIndexer,
    index_parameters,
    window_integral,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FullAttention(Mixer):
    r"""Softmax attention over the whole context: MHA, GQA and MQA differ in `kv_heads` alone.

    .. math:: B_{kv}/b = H_{kv} (D_k + D_v) S

    Parameters
    ----------
    query_heads, kv_heads : int
        :math:`H, H_{kv}`; `kv_heads` is the number cached even where the layer shares another's.
    head_dim : int
        :math:`D_k`. [values]
    value_dim : int or None
        :math:`D_v`, equal to `head_dim` where None. [values]
    shares_kv : bool
        The layer reuses an earlier layer's cache: it stores none and projects no keys and values.
    values_are_keys : bool
        One projection makes both; both are cached.
    bias, qk_norm, output_gate, sinks
        Small tensors that only the parameter count sees.

    References
    ----------
    .. [1] Shazeer, "Fast Transformer Decoding: One Write-Head is All You Need," 2019, arXiv:1911.02150.
    .. [2] Ainslie et al., "GQA," EMNLP 2023, arXiv:2305.13245, section 2.2.

    Examples
    --------
    >>> FullAttention(query_heads=64, kv_heads=8, head_dim=128).kv_values(1)
    2048
    """

    query_heads: int
    kv_heads: int
    head_dim: int
    value_dim: int | None = None
    shares_kv: bool = False
    values_are_keys: bool = False
    bias: Literal["none", "qkv", "qkvo"] = "none"
    qk_norm: Literal["none", "head", "full"] = "none"
    output_gate: Literal["none", "full", "head"] = "none"
    sinks: bool = False
    indexer: SparseIndexer | None = None
    kind: Literal["full"] = "full"

    @property
    def values_dim(self) -> int:
        """Width of a value head. [values]"""
        return self.head_dim if self.value_dim is None else self.value_dim

    @property
    def kv_values_per_token(self) -> int:
        """Values one token adds to the cache of this layer while it is visible. [values]"""
        return 0 if self.shares_kv else self.kv_heads * (self.head_dim + self.values_dim)

    def kv_values(self, context_tokens: Floats) -> Floats:
        """Values held for a context. [values]"""
        index = self.indexer.key_values_per_token if self.indexer else 0
        return (self.kv_values_per_token + index) * context_tokens

    def kv_share(self, tp: Floats) -> Floats:
        r"""Share of the cache on each of `tp` ranks, :math:`\lceil H_{kv}/tp \rceil / H_{kv}`. [1]"""
        return np.ceil(self.kv_heads / tp) / self.kv_heads

    def visible_integral(self, position: Floats) -> Floats:
        """Integral of the visible tokens from position 0. [token^2]"""
        reach = np.inf if self.indexer is None else float(self.indexer.selected_tokens)
        return window_integral(position, reach)

    def read_values(self, visible_tokens: Floats, context_tokens: Floats) -> Floats:
        """Values one decode step reads, the indexer's keys included. [values]"""
        own = self.kv_heads * (self.head_dim + self.values_dim) * visible_tokens
        return own if self.indexer is None else own + self.indexer.key_values_per_token * context_tokens

    def decode_flops(self, visible_tokens: Floats, context_tokens: Floats) -> Floats:
        """Scores and weighted sum of one new token. [FLOP]"""
        return self.prefill_flops(visible_tokens, context_tokens)

    def prefill_flops(self, visible_tokens: Floats, context_tokens: Floats) -> Floats:
        """The same for one prompt token that sees `visible_tokens`. [FLOP]"""
        width = self.query_heads * (self.head_dim + self.values_dim)
        own = FLOP_PER_MULTIPLY_ADD * width * visible_tokens
        return own if self.indexer is None else own + self.indexer.flops(context_tokens)

    def sharded_parameters(self, hidden_size: int) -> int:
        """Parameters split over query heads: query and output projections. [parameters]"""
        queries = self.query_heads * self.head_dim
        outputs = self.query_heads * self.values_dim
        gate = {"none": 0, "full": queries, "head": self.query_heads}[self.output_gate]
        bias = {"none": 0, "qkv": queries, "qkvo": queries + hidden_size}[self.bias]
        sinks = self.query_heads if self.sinks else 0
        norm = queries if self.qk_norm == "full" else 0
        return hidden_size * (queries + gate + outputs) + bias + sinks + norm

    def kv_parameters(self, hidden_size: int) -> int:
        """Parameters split over KV heads, replicated beyond them. [parameters]"""
        if self.shares_kv:
            return 0
        keys = self.kv_heads * self.head_dim
        values = 0 if self.values_are_keys else self.kv_heads * self.values_dim
        bias = 0 if self.bias == "none" else keys + values
        norm = keys if self.qk_norm == "full" else 0
        return hidden_size * (keys + values) + bias + norm

    def replicated_parameters(self, hidden_size: int) -> int:
        """Parameters that every rank holds. [parameters]"""
        norm = 2 * self.head_dim if self.qk_norm == "head" else 0
        return norm + index_parameters(self.indexer, hidden_size, hidden_size, key_norm=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlidingAttention(FullAttention):
    r"""Softmax attention over the last `window_tokens`: :math:`B_{kv}/b = H_{kv}(D_k+D_v) \min(S, W)`.

    Examples
    --------
    >>> float(SlidingAttention(query_heads=32, kv_heads=16, head_dim=128, window_tokens=1024).kv_values(8192))
    4194304.0
    """

    window_tokens: int
    kind: Literal["sliding"] = "sliding"  # type: ignore[assignment]

    def kv_values(self, context_tokens: Floats) -> Floats:
        """Values held for a context. [values]"""
        return self.kv_values_per_token * np.minimum(context_tokens, float(self.window_tokens))

    def visible_integral(self, position: Floats) -> Floats:
        """Integral of the visible tokens from position 0. [token^2]"""
        return window_integral(position, float(self.window_tokens))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkedAttention(FullAttention):
    """Softmax attention inside fixed chunks of the context (Llama 4): at most one chunk is held.

    Examples
    --------
    >>> local = ChunkedAttention(query_heads=40, kv_heads=8, head_dim=128, chunk_tokens=8192)
    >>> float(local.visible_integral(16384.0) / 16384)
    4096.0
    """

    chunk_tokens: int
    kind: Literal["chunked"] = "chunked"  # type: ignore[assignment]

    def kv_values(self, context_tokens: Floats) -> Floats:
        """Values held for a context. [values]"""
        return self.kv_values_per_token * np.minimum(context_tokens, float(self.chunk_tokens))

    def visible_around(self, position: Floats) -> Floats:
        """Mean visible tokens of sequences whose lengths vary by as much as they are long. [token]

        The position in its chunk is then as good as random: half a chunk beyond the first. A single length
        would make the cost of a request a sawtooth of its length.
        """
        spread = 2.0 * np.minimum(position, float(self.chunk_tokens))
        return self.visible_integral(spread) / spread

    def visible_integral(self, position: Floats) -> Floats:
        """Integral of the visible tokens from position 0, a sawtooth's. [token^2]"""
        whole = np.floor(position / self.chunk_tokens)
        rest = position - whole * self.chunk_tokens
        return whole * self.chunk_tokens**2 / 2 + rest**2 / 2
