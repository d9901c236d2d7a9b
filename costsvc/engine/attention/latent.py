"""Attention over a compressed latent that all heads share: MLA, and DeepSeek-V4's compressed cache."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from costsvc.engine.attention.base import (
    FLOP_PER_MULTIPLY_ADD,
    Floats,
    Mixer,
    SparseIndexer,
    index_parameters,
    window_integral,
)

# The 8-bit cache layout of sparse MLA in SGLang and vLLM: 656 B of latent and rotary key, 132 B of index key.
ROTARY_BYTES = 2
SCALE_BYTES = 4
SCALED_TOGETHER = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention(Mixer):
    r"""MLA: one compressed latent and one shared rotary key per token, for all heads.

    .. math:: B_{kv}/b = (d_c + d_R) S

    No factor 2 and no heads; every TP rank holds it whole. Decode works on the latent (absorbed
    projections), so its FLOPs per visible token are :math:`2H(2d_c + d_R)`; prefill expands it.

    References
    ----------
    .. [1] DeepSeek-AI, "DeepSeek-V2," 2024, arXiv:2405.04434, eq. 9-19 and table 1.

    Examples
    --------
    >>> LatentAttention(query_heads=128, latent_dim=512, rope_dim=64, nope_dim=128, value_dim=128).kv_values(1)
    576
    """

    query_heads: int
    latent_dim: int
    rope_dim: int
    nope_dim: int
    value_dim: int
    query_latent_dim: int | None = None
    output_gate: bool = False
    indexer: SparseIndexer | None = None
    kind: Literal["mla"] = "mla"
    products: ClassVar[int] = 5  # into both latents, queries up, keys and values absorbed, output

    def kv_values(self, context_tokens: Floats) -> Floats:
        """Values held for a context. [values]"""
        index = self.indexer.key_values_per_token if self.indexer else 0
        return (self.latent_dim + self.rope_dim + index) * context_tokens

    def layout_bytes(self, kv_value_bytes: float) -> float:
        """The 8-bit layout of sparse MLA: a scale per 128 latents and per index key, the rotary key in 16 bit.

        Examples
        --------
        >>> sparse = SparseIndexer(selected_tokens=2048, heads=64, head_dim=128)
        >>> v32 = LatentAttention(
        ...     query_heads=128, latent_dim=512, rope_dim=64, nope_dim=128, value_dim=128, indexer=sparse
        ... )
        >>> v32.kv_values(1) + v32.layout_bytes(1.0)
        788.0
        """
        if self.indexer is None or kv_value_bytes >= ROTARY_BYTES:
            return 0.0
        scales = self.latent_dim / SCALED_TOGETHER + (1 if self.indexer.heads else 0)
        return scales * SCALE_BYTES + self.rope_dim * (ROTARY_BYTES - kv_value_bytes)

    def visible_integral(self, position: Floats) -> Floats:
        """Integral of the visible tokens from position 0. [token^2]"""
        reach = np.inf if self.indexer is None else float(self.indexer.selected_tokens)
        return window_integral(position, reach)

    def read_values(self, visible_tokens: Floats, context_tokens: Floats) -> Floats:
        """Values one decode step reads. [values]"""
        own = (self.latent_dim + self.rope_dim) * visible_tokens
        return own if self.indexer is None else own + self.indexer.key_values_per_token * context_tokens

    def decode_flops(self, visible_tokens: Floats, context_tokens: Floats) -> Floats:
        """One new token against the latents, projections absorbed. [FLOP]"""
        width = self.query_heads * (2 * self.latent_dim + self.rope_dim)
        own = FLOP_PER_MULTIPLY_ADD * width * visible_tokens
        return own if self.indexer is None else own + self.indexer.flops(context_tokens)

    def prefill_flops(self, visible_tokens: Floats, context_tokens: Floats) -> Floats:
        """One prompt token against expanded keys and values. [FLOP]"""
        width = self.query_heads * (self.nope_dim + self.rope_dim + self.value_dim)
        own = FLOP_PER_MULTIPLY_ADD * width * visible_tokens
        return own if self.indexer is None else own + self.indexer.flops(context_tokens)

    def sharded_parameters(self, hidden_size: int) -> int:
        """Parameters split over heads: the up-projections and the output. [parameters]"""
        queries_in = self.query_latent_dim or hidden_size
        queries = queries_in * self.query_heads * (self.nope_dim + self.rope_dim)
        expansion = self.latent_dim * self.query_heads * (self.nope_dim + self.value_dim)
        outputs = self.query_heads * self.value_dim * hidden_size
        return queries + expansion + outputs * (2 if self.output_gate else 1)

    def replicated_parameters(self, hidden_size: int) -> int:
        """The down-projections, which every rank holds. [parameters]"""
        latent = hidden_size * (self.latent_dim + self.rope_dim) + self.latent_dim
        query = (hidden_size + 1) * self.query_latent_dim if self.query_latent_dim else 0
        index = index_parameters(self.indexer, hidden_size, self.query_latent_dim or hidden_size, key_norm=2)
        return latent + query + index


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedAttention(Mixer):
    """One latent head that is key and value at once: a window in full, the rest one entry per `compress_ratio`.

    DeepSeek-V4. `indexer` picks compressed entries; `state_values` is the compressor's tail per sequence.
    """

    query_heads: int
    head_dim: int
    window_tokens: int
    query_latent_dim: int
    output_groups: int
    output_latent_dim: int
    compress_ratio: int
    indexer: SparseIndexer | None = None
    kind: Literal["compressed"] = "compressed"
    products: ClassVar[int] = 5  # into the latents, queries up, compressor, grouped output, output

    def kv_values(self, context_tokens: Floats) -> Floats:
        """Values held for a context. [values]"""
        window = self.head_dim * np.minimum(context_tokens, float(self.window_tokens))
        if not self.compress_ratio:
            return window
        index = self.indexer.key_values_per_token if self.indexer else 0
        return window + (self.head_dim + index) * context_tokens / self.compress_ratio

    def visible_integral(self, position: Floats) -> Floats:
        """Integral of the visible entries from position 0. [token^2]"""
        window = window_integral(position, float(self.window_tokens))
        if not self.compress_ratio:
            return window
        reach = np.inf if self.indexer is None else float(self.indexer.selected_tokens) * self.compress_ratio
        return window + window_integral(position, reach) / self.compress_ratio

    def read_values(self, visible_tokens: Floats, context_tokens: Floats) -> Floats:
        """Values one decode step reads. [values]"""
        own = self.head_dim * visible_tokens
        if self.indexer is None:
            return own
        return own + self.indexer.key_values_per_token * context_tokens / self.compress_ratio

    def decode_flops(self, visible_tokens: Floats, context_tokens: Floats) -> Floats:
        """One new token against the visible entries. [FLOP]"""
        own = FLOP_PER_MULTIPLY_ADD * self.query_heads * 2 * self.head_dim * visible_tokens
        return own if self.indexer is None else own + self.indexer.flops(context_tokens) / self.compress_ratio

    def prefill_flops(self, visible_tokens: Floats, context_tokens: Floats) -> Floats:
        """The same for one prompt token. [FLOP]"""
        return self.decode_flops(visible_tokens, context_tokens)

    def sharded_parameters(self, hidden_size: int) -> int:
        """Query up-projection, grouped output projections and sinks. [parameters]"""
        queries = self.query_latent_dim * self.query_heads * self.head_dim
        grouped = self.query_heads * self.head_dim * self.output_latent_dim
        outputs = self.output_groups * self.output_latent_dim * hidden_size
        return queries + grouped + outputs + self.query_heads

    def replicated_parameters(self, hidden_size: int) -> int:
        """Down-projections, the compressor and the indexer. [parameters]"""
        query = (hidden_size + 1) * self.query_latent_dim
        latent = (hidden_size + 1) * self.head_dim
        overlap = 2 if self.indexer else 1
        compressor = _compressor_parameters(hidden_size, self.head_dim, self.compress_ratio, overlap)
        if self.indexer is None:
            return query + latent + compressor
        scorer = self.indexer.heads * (self.query_latent_dim * self.indexer.head_dim + hidden_size)
        scorer += _compressor_parameters(hidden_size, self.indexer.head_dim, self.compress_ratio, overlap)
        return query + latent + compressor + scorer


def _compressor_parameters(hidden_size: int, head_dim: int, compress_ratio: int, overlap: int) -> int:
    """Projection and gate of the compressor, its positions and its norm. [parameters]"""
    if not compress_ratio:
        return 0
    width = overlap * head_dim
    return 2 * hidden_size * width + compress_ratio * width + head_dim
