"""What the variants share: the array type, the sparse indexer and the sliding integral."""

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = float | NDArray[np.float64]

FLOP_PER_MULTIPLY_ADD = 2


@dataclass(frozen=True, slots=True)
class SparseIndexer:
    """A small scorer that picks which tokens an attention layer reads (DeepSeek sparse attention).

    Its keys are cached beside the KV cache unless the layer reuses another layer's choice
    (`heads` is then 0). All keys are read at each step; the attention itself reads `selected_tokens`.

    References
    ----------
    .. [1] DeepSeek-AI, "DeepSeek-V3.2-Exp," 2025, section 2.1 (lightning indexer, top-k 2,048).
    """

    selected_tokens: int
    heads: int = 0
    head_dim: int = 0

    @property
    def key_values_per_token(self) -> int:
        """Cached key values per token; none where the choice is another layer's. [values]"""
        return self.head_dim if self.heads else 0

    def flops(self, context_tokens: Floats) -> Floats:
        """Scoring one query against a context. [FLOP]"""
        return FLOP_PER_MULTIPLY_ADD * self.heads * self.head_dim * context_tokens


class Mixer:
    """What most variants answer alike."""

    __slots__ = ()

    keeps_tokens: ClassVar[bool] = True
    """Whether each token stays readable, so that the context makes attention longer."""

    products: ClassVar[int] = 2
    """Matrix products of a layer's mixer: the fused input projections and the output. [1]"""

    def state_bytes(self) -> float:
        """Memory of a sequence that does not grow with it. [B]"""
        return 0.0

    def layout_bytes(self, kv_value_bytes: float) -> float:
        """Bytes a token's cache takes in a layer beside its values, such as scales. [B/token]"""
        return 0.0

    def kv_share(self, tp: Floats) -> Floats:
        """Share of the cache on each of `tp` ranks; a cache without heads is held whole. [1]"""
        return np.ones_like(tp, dtype=np.float64)

    def kv_parameters(self, hidden_size: int) -> int:
        """Parameters split over KV heads, replicated beyond them. [parameters]"""
        return 0


def window_integral(position: Floats, window: float) -> Floats:
    """Integral from position 0 of min(position, window). [token^2]"""
    if np.isinf(window):
        return position * position / 2
    inside = np.minimum(position, window)
    return inside * inside / 2 + window * (position - inside)


def index_parameters(indexer: SparseIndexer | None, hidden_size: int, query_dim: int, key_norm: int) -> int:
    """Query, key and head-weight projections of an indexer, and its key norm. [parameters]"""
    if indexer is None or not indexer.heads:
        return 0
    queries = query_dim * indexer.heads * indexer.head_dim
    keys = hidden_size * indexer.head_dim
    weights = hidden_size * indexer.heads
    return queries + keys + weights + key_norm * indexer.head_dim
