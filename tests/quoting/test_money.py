"""Money as text: enough decimals, no exponent, never exactly three."""

import re
from decimal import ROUND_HALF_EVEN, Decimal, localcontext

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costsvc.quoting.money import money

FORM = re.compile(r"-?\d+\.\d{6,}")


@settings(max_examples=200, deadline=None)
@given(amount=st.floats(-1e12, 1e12, allow_nan=False).filter(lambda x: x == 0 or abs(x) > 1e-30))
def test_an_amount_is_plain_decimal_text(amount: float) -> None:
    text = money(amount)
    assert FORM.fullmatch(text)
    assert float(text) == pytest.approx(amount, rel=1e-8)


HALVES = st.builds(
    lambda digits, exponent: float(f"{digits}5e{exponent}"),
    st.integers(-(10**10), 10**10),
    st.integers(-20, 2),
)


@settings(max_examples=300, deadline=None)
@given(amount=st.floats(-1e12, 1e12) | HALVES)
def test_an_amount_is_the_nearest_to_the_number_as_it_is_printed(amount: float) -> None:
    exact = Decimal(repr(amount))
    decimals = max(6, 8 - exact.adjusted()) if exact else 6
    with localcontext(prec=400):
        assert money(amount) == format(exact.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_EVEN), "f")


def test_a_decimal_keeps_its_digits() -> None:
    assert money(Decimal("3.09")) == "3.09000000"
    assert Decimal(money(Decimal("0.1234565"))) == Decimal("0.1234565")


@pytest.mark.parametrize("amount", [float("nan"), float("inf"), Decimal("NaN")])
def test_no_amount_is_no_number(amount: float | Decimal) -> None:
    with pytest.raises(ValueError, match="is not an amount of money"):
        money(amount)
