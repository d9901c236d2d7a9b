"""Speculative decoding: what a verified step yields, and the model that a multi-token-prediction module is.

Proposed tokens are verified in one pass; of them the longest accepted beginning stays, and the pass itself
gives one token more, so every step yields at least one.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import product

import numpy as np

from costsvc.engine.parameters import layer_parameters
from costsvc.engine.specs import LayerGroup, ModelSpec

_KEPT_MODULES = 128
PROJECTED_VECTORS = 2
"""A module joins the hidden state with the next token's vector, and projects both to one."""


def expected_tokens(acceptance_share: float, draft_tokens: int) -> float:
    r"""Mean tokens of a step that verifies k proposals, :math:`(1 - a^{k+1}) / (1 - a)`. [token]

    Parameters
    ----------
    acceptance_share : float
        Probability :math:`a` that a proposal is accepted where all before it were. [1]
    draft_tokens : int
        Proposals :math:`k`. [token]

    References
    ----------
    .. [1] Leviathan, Kalman and Matias, "Fast inference from transformers via speculative decoding," ICML
       2023, arXiv:2211.17192, eq. 1.

    Examples
    --------
    >>> expected_tokens(0.5, 3), expected_tokens(1.0, 3), expected_tokens(0.0, 3)
    (1.875, 4.0, 1.0)
    """
    return sum(acceptance_share**accepted for accepted in range(draft_tokens + 1))


def deviation_tokens(acceptance_share: float, draft_tokens: int) -> float:
    r"""Standard deviation of the same: a geometric number, cut off at k + 1. [token]

    From :math:`E[n^2] = \sum_j (2 j + 1) P(n > j)`.

    Examples
    --------
    >>> deviation_tokens(0.5, 1), deviation_tokens(1.0, 3)
    (0.5, 0.0)
    """
    square = sum((2 * place + 1) * acceptance_share**place for place in range(draft_tokens + 1))
    return float(np.sqrt(max(square - expected_tokens(acceptance_share, draft_tokens) ** 2, 0.0)))


@lru_cache(maxsize=_KEPT_MODULES)
def mtp_module(model: ModelSpec) -> ModelSpec:
    """The multi-token-prediction module of a model that has one: a single layer, the tables shared.

    Its layer is that pairing of the model's own mixers and feed-forward blocks which explains
    `mtp_parameters` best; files may hold copies of the embedding and of the head beside it.
    """
    projection = PROJECTED_VECTORS * model.hidden_size**2
    layer = min(_layers(model), key=lambda group: _unexplained(model, group, projection))
    return replace(
        model,
        id=f"{model.id} MTP",
        groups=(layer,),
        pattern=(0,),
        tied_embeddings=True,
        position_values=0,
        extra_parameters=projection,
        resident_parameters=0,
        mtp_parameters=0,
    )


def _layers(model: ModelSpec) -> Iterator[LayerGroup]:
    mixers = (group.attention for group in model.groups if group.attention and group.attention.keeps_tokens)
    blocks = (group.ffn for group in model.groups if group.ffn)
    for mixer, block in product(dict.fromkeys(mixers), dict.fromkeys(blocks)):
        yield LayerGroup(attention=mixer, ffn=block, norm_vectors=model.groups[0].norm_vectors)


def _unexplained(model: ModelSpec, layer: LayerGroup, projection: int) -> float:
    """Relative difference to the counted parameters, with none, one or two tables in the file. [1]"""
    own = layer_parameters(layer, model.hidden_size).total + projection
    table = model.vocab_size * model.hidden_size
    return min(abs((own + tables * table) / model.mtp_parameters - 1.0) for tables in range(3))
