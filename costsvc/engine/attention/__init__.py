"""The attention variants: what each keeps, reads and computes. Adding one touches this package alone.

A variant answers for one layer. Positions and contexts are tokens and may be arrays; all formulas are
elementwise. A head's width is its own fact, never hidden size over heads.
"""

from typing import TypeAlias

from costsvc.engine.attention.base import Floats, SparseIndexer
from costsvc.engine.attention.heads import ChunkedAttention, FullAttention, SlidingAttention
from costsvc.engine.attention.latent import CompressedAttention, LatentAttention
from costsvc.engine.attention.recurrent import RecurrentState

Attention: TypeAlias = (
    FullAttention
    | SlidingAttention
    | ChunkedAttention
    | LatentAttention
    | CompressedAttention
    | RecurrentState
)

__all__ = [
    "Attention",
    "ChunkedAttention",
    "CompressedAttention",
    "Floats",
    "FullAttention",
    "LatentAttention",
    "RecurrentState",
    "SlidingAttention",
    "SparseIndexer",
    "decode_visible_tokens",
    "mean_visible_tokens",
]


def mean_visible_tokens(attention: Attention, first: Floats, last: Floats) -> Floats:
    """Mean of the visible tokens over positions uniform on [first, last]. [token]

    Raises nothing; `last` must exceed `first`.

    Examples
    --------
    >>> mean_visible_tokens(FullAttention(query_heads=1, kv_heads=1, head_dim=1), 0.0, 10.0)
    5.0
    """
    return (attention.visible_integral(last) - attention.visible_integral(first)) / (last - first)


def decode_visible_tokens(attention: Attention, first: Floats, last: Floats) -> Floats:
    """The same for decode tokens of many sequences, whose lengths vary around these positions. [token]"""
    if isinstance(attention, ChunkedAttention):
        return attention.visible_around((first + last) / 2)
    return mean_visible_tokens(attention, first, last)
