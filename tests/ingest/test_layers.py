"""The order of layers, spelled in one line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costsvc.ingest.layers import Layer, layer_order, spelled

ATTENTION = {"full", "sliding", "mamba2"}
FFN = {"mlp", "moe"}


def test_repeats_and_brackets_nest() -> None:
    order = layer_order("2*(2*sliding+mlp, full+moe), mamba2, mlp", ATTENTION, FFN)
    local, whole = Layer("sliding", "mlp"), Layer("full", "moe")
    assert order == [local, local, whole, local, local, whole, Layer("mamba2", None), Layer(None, "mlp")]


def test_spaces_and_line_breaks_do_not_matter() -> None:
    assert layer_order(" 2 * full+mlp ,\n full+mlp ", ATTENTION, FFN) == [Layer("full", "mlp")] * 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "end where another layer"),
        ("full+mlp,", "end where another layer"),
        ("3*", "end where another layer"),
        ("(full+mlp", "not closed"),
        ("full+mlp)", r"'\)' is not expected"),
        (", full+mlp", "',' is not expected"),
        ("full+mlp full+mlp", "'full\\+mlp' is not expected"),
        ("full & mlp", "cannot be read at '& mlp'"),
        ("0*full+mlp", "repeat 1 to 1000 times, not 0"),
        ("1000*(1000*full+mlp)", "at most 1000 layers"),
        ("9999999*full+mlp", "repeat 1 to 1000 times"),
        ("half+mlp", "name 'half', which attention does not define"),
        ("full+wide", "name 'wide', which ffn does not define"),
        ("half", "defined under neither or both"),
    ],
)
def test_what_cannot_be_meant_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        layer_order(text, ATTENTION, FFN)


def test_a_name_of_a_mixer_and_a_block_alone_is_refused() -> None:
    with pytest.raises(ValueError, match="neither or both"):
        layer_order("full", {"full"}, {"full"})


@given(
    st.lists(
        st.sampled_from(["full+mlp", "sliding+mlp", "full+moe", "mamba2", "mlp"]), min_size=1, max_size=60
    )
)
def test_an_order_that_is_spelled_reads_as_itself(names: list[str]) -> None:
    order = layer_order(spelled(names), ATTENTION, FFN)
    assert ["+".join(part for part in layer if part) for layer in order] == names


def test_repeats_are_spelled_once() -> None:
    assert spelled((["sliding+mlp"] * 5 + ["full+mlp"]) * 10) == "10*(5*sliding+mlp, full+mlp)"
