"""Recurrent mixers by their shapes: what their tensors count and what one sequence keeps.

Sizes are of one layer. Biases of the projections are none where an argument does not name them.
"""

from costsvc.engine.attention.recurrent import RecurrentState


def mamba1(
    *,
    hidden_size: int,
    inner_size: int,
    state_size: int,
    step_rank: int,
    kernel_size: int,
    conv_bias: bool,
    projection_bias: bool,
    inner_norms: bool,
) -> RecurrentState:
    """A selective state space with a state per channel; `inner_norms` are Jamba's, on the step and both states.

    References
    ----------
    .. [1] Gu and Dao, "Mamba," 2023, arXiv:2312.00752, algorithm 2 and section 3.4.

    Examples
    --------
    >>> mamba1(
    ...     hidden_size=4096, inner_size=8192, state_size=16, step_rank=256, kernel_size=4,
    ...     conv_bias=True, projection_bias=False, inner_norms=True,
    ... ).parameters
    105308448
    """
    projections = hidden_size * 2 * inner_size + inner_size * hidden_size
    biases = 2 * inner_size + hidden_size if projection_bias else 0
    conv = inner_size * (kernel_size + conv_bias)
    selection = inner_size * (step_rank + 2 * state_size) + (step_rank + 1) * inner_size
    state = inner_size * state_size + inner_size
    norms = step_rank + 2 * state_size if inner_norms else 0
    return RecurrentState(
        variant="mamba1",
        state_values=inner_size * state_size,
        conv_values=inner_size * (kernel_size - 1),
        parameters=projections + biases + conv + selection + state + norms,
    )


def mamba2(
    *,
    hidden_size: int,
    heads: int,
    head_dim: int,
    state_size: int,
    groups: int,
    kernel_size: int,
    conv_bias: bool,
    projection_bias: bool,
) -> RecurrentState:
    """A state space with scalar decay per head.

    References
    ----------
    .. [1] Dao and Gu, "Transformers are SSMs," ICML 2024, arXiv:2405.21060, section 7.

    Examples
    --------
    >>> mamba2(
    ...     hidden_size=2688, heads=64, head_dim=64, state_size=128, groups=8, kernel_size=4,
    ...     conv_bias=True, projection_bias=False,
    ... ).parameters
    38742208
    """
    inner_size = heads * head_dim
    conv_size = inner_size + 2 * groups * state_size
    in_size = inner_size + conv_size + heads
    projections = hidden_size * in_size + inner_size * hidden_size
    biases = in_size + hidden_size if projection_bias else 0
    per_head = 3 * heads
    return RecurrentState(
        variant="mamba2",
        state_values=inner_size * state_size,
        conv_values=conv_size * (kernel_size - 1),
        parameters=projections + biases + conv_size * (kernel_size + conv_bias) + per_head + inner_size,
    )


def gated_delta(
    *, hidden_size: int, key_heads: int, value_heads: int, key_dim: int, value_dim: int, kernel_size: int
) -> RecurrentState:
    """A gated delta network: keys and values through one convolution, an output gate, a norm per head.

    References
    ----------
    .. [1] Yang, Kautz and Hatamizadeh, "Gated Delta Networks," ICLR 2025, arXiv:2412.06464, section 3.

    Examples
    --------
    >>> gated_delta(
    ...     hidden_size=2048, key_heads=16, value_heads=32, key_dim=128, value_dim=128, kernel_size=4
    ... ).parameters
    33718464
    """
    keys, values = key_heads * key_dim, value_heads * value_dim
    conv_size = 2 * keys + values
    projections = hidden_size * (conv_size + values + 2 * value_heads) + values * hidden_size
    return RecurrentState(
        variant="gdn",
        state_values=value_heads * key_dim * value_dim,
        conv_values=conv_size * (kernel_size - 1),
        parameters=projections + conv_size * kernel_size + 2 * value_heads + value_dim,
    )


def kimi_delta(
    *, hidden_size: int, heads: int, head_dim: int, kernel_size: int, full_rank_gate: bool
) -> RecurrentState:
    """Kimi delta attention: a decay per channel from a low-rank projection, an output gate of low or full rank.

    References
    ----------
    .. [1] Moonshot AI, "Kimi Linear," 2025, arXiv:2510.26692, section 4.

    Examples
    --------
    >>> kimi_delta(
    ...     hidden_size=2304, heads=32, head_dim=128, kernel_size=4, full_rank_gate=False
    ... ).parameters
    39514272
    """
    inner_size = heads * head_dim
    low_rank = hidden_size * head_dim + head_dim * inner_size
    gate = hidden_size * inner_size if full_rank_gate else low_rank
    projections = 4 * hidden_size * inner_size + low_rank + gate + hidden_size * heads
    return RecurrentState(
        variant="kda",
        state_values=heads * head_dim * head_dim,
        conv_values=3 * inner_size * (kernel_size - 1),
        parameters=projections + 3 * inner_size * kernel_size + inner_size + heads + head_dim,
    )


def lightning(*, hidden_size: int, heads: int, head_dim: int) -> RecurrentState:
    """Linear attention with an output gate and a norm, decay fixed per head.

    References
    ----------
    .. [1] MiniMax, "MiniMax-01," 2025, arXiv:2501.08313, section 2.2.

    Examples
    --------
    >>> lightning(hidden_size=6144, heads=64, head_dim=128).parameters
    251666432
    """
    inner_size = heads * head_dim
    return RecurrentState(
        variant="lightning",
        state_values=heads * head_dim * head_dim,
        conv_values=0,
        parameters=5 * hidden_size * inner_size + inner_size,
    )


def short_convolution(*, hidden_size: int, kernel_size: int, bias: bool) -> RecurrentState:
    """A gated convolution over the last tokens (LFM2): nothing else is kept.

    Examples
    --------
    >>> short_convolution(hidden_size=2048, kernel_size=3, bias=False).parameters
    16783360
    """
    projections = 4 * hidden_size * hidden_size + (4 * hidden_size if bias else 0)
    return RecurrentState(
        variant="shortconv",
        state_values=0,
        conv_values=hidden_size * (kernel_size - 1),
        parameters=projections + hidden_size * (kernel_size + bias),
    )
