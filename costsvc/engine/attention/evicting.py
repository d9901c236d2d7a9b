"""Attention over a cache from which an engine drops tokens: a lever of a deployment, never a model's fact."""

from dataclasses import dataclass

from costsvc.engine.attention.base import Floats
from costsvc.engine.attention.heads import FullAttention


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictingAttention(FullAttention):
    r"""Full attention whose cache keeps a share :math:`\alpha` of the tokens of a context.

    The prompt is computed in full before tokens are dropped, so prefill costs what it did.

    References
    ----------
    .. [1] Zhang et al., "H2O: Heavy-Hitter Oracle," NeurIPS 2023, arXiv:2306.14048, section 4.

    Examples
    --------
    >>> EvictingAttention(query_heads=64, kv_heads=8, head_dim=128, kept_share=0.25).kv_values(1000)
    512000.0
    """

    kept_share: float

    def kv_values(self, context_tokens: Floats) -> Floats:
        """Values held for a context. [values]"""
        return self.kept_share * FullAttention.kv_values(self, context_tokens)

    def read_values(self, visible_tokens: Floats, context_tokens: Floats) -> Floats:
        """Values one decode step reads of what was kept. [values]"""
        return self.kept_share * FullAttention.read_values(self, visible_tokens, context_tokens)

    def decode_flops(self, visible_tokens: Floats, context_tokens: Floats) -> Floats:
        """One new token against what was kept. [FLOP]"""
        return self.kept_share * FullAttention.decode_flops(self, visible_tokens, context_tokens)
