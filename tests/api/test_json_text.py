"""Answers as JSON: the text that Python's own writer gives, and never a number that is not finite."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costsvc.api.json_text import to_json
from costsvc.quoting.answer.plain import LastingList, LastingSection

NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.floats(-1e-3, 1e-3) | st.floats(1e14, 1e18)
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | NUMBERS
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
)


@given(answer=PLAIN)
def test_the_text_is_that_of_the_standard_library(answer: Any) -> None:
    assert to_json(answer) == _standard(answer)


@given(number=NUMBERS)
def test_what_lasts_is_the_same_text_again(number: float) -> None:
    answer = {"a": LastingSection(b=number, c=[number]), "d": {"e": LastingList([number, {"f": number}])}}
    assert to_json(answer) == to_json(answer) == _standard(answer)


@pytest.mark.parametrize("endless", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    "holding",
    [
        lambda number: number,
        lambda number: {"prices": {"output": number}},
        lambda number: [1.0, (number,)],
        lambda number: {"market": LastingSection(median=number)},
        lambda number: {"sources": LastingList([{"value": number}])},
    ],
)
def test_a_number_that_is_not_finite_never_leaves(holding: Any, endless: float) -> None:
    with pytest.raises(ValueError, match="not a number to answer with"):
        to_json(holding(endless))


def _standard(answer: Any) -> bytes:
    return json.dumps(answer, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
