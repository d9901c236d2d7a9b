"""Recurrent mixers by their shapes, held against counts of released files and against each other."""

import pytest

from costsvc.engine.attention import RecurrentState
from costsvc.engine.attention.mixers import (
    gated_delta,
    kimi_delta,
    lightning,
    mamba1,
    mamba2,
    short_convolution,
)

# Parameters of one mixer of models whose whole count meets the total of the released file (docs/importing-models.md).
COUNTED = [
    (
        mamba2(
            hidden_size=8192,
            heads=256,
            head_dim=64,
            state_size=256,
            groups=8,
            kernel_size=4,
            conv_bias=True,
            projection_bias=False,
        ),
        438_424_320,
    ),
    (
        mamba1(
            hidden_size=8192,
            inner_size=16384,
            state_size=16,
            step_rank=512,
            kernel_size=4,
            conv_bias=True,
            projection_bias=False,
            inner_norms=True,
        ),
        420_332_064,
    ),
    (
        gated_delta(
            hidden_size=5120, key_heads=16, value_heads=48, key_dim=128, value_dim=128, kernel_size=4
        ),
        115_876_064,
    ),
    (kimi_delta(hidden_size=7168, heads=96, head_dim=128, kernel_size=4, full_rank_gate=True), 443_740_384),
    (lightning(hidden_size=6144, heads=64, head_dim=128), 251_666_432),
    (short_convolution(hidden_size=2048, kernel_size=3, bias=False), 16_783_360),
]


@pytest.mark.parametrize(("mixer", "parameters"), COUNTED, ids=lambda value: getattr(value, "variant", ""))
def test_a_mixer_counts_as_in_the_released_file(mixer: RecurrentState, parameters: int) -> None:
    assert mixer.parameters == parameters


def test_a_bias_adds_one_value_per_output() -> None:
    sizes = {"hidden_size": 64, "heads": 4, "head_dim": 32, "state_size": 16, "groups": 1, "kernel_size": 4}
    plain = mamba2(**sizes, conv_bias=False, projection_bias=False).parameters
    conv_size, in_size = 4 * 32 + 2 * 16, 2 * 4 * 32 + 2 * 16 + 4
    assert mamba2(**sizes, conv_bias=True, projection_bias=False).parameters == plain + conv_size
    assert mamba2(**sizes, conv_bias=False, projection_bias=True).parameters == plain + in_size + 64


def test_a_state_is_keys_times_values_of_every_head() -> None:
    delta = gated_delta(hidden_size=64, key_heads=2, value_heads=4, key_dim=8, value_dim=16, kernel_size=4)
    assert delta.state_values == 4 * 8 * 16
    assert delta.conv_values == (2 * 2 * 8 + 4 * 16) * 3
