"""Money and plain numbers as a reader gets them: decimal text, never exponents, never three decimals."""

from bisect import bisect_right
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Final

LEAST_DECIMALS = 6
SIGNIFICANT_DIGITS = 9
# The largest number has 309 digits before the point.
_EXACT = Context(prec=400)


def _decimals(exponent: int) -> int:
    return max(LEAST_DECIMALS, SIGNIFICANT_DIGITS - 1 - exponent)


# From the first power of ten to below the last, a float and the decimal that it is printed as round alike: an amount
# has fifteen digits at most, as many as a float tells apart.
_EXPONENTS: Final = range(-15, 8)
_POWERS_OF_TEN: Final = tuple(float(f"1e{exponent}") for exponent in _EXPONENTS)
_NOTHING: Final = f"%.{LEAST_DECIMALS}f"
_FORMS: Final = tuple((f"%.{_decimals(one)}f", f"%.{_decimals(one) + 1}f") for one in _EXPONENTS)


def money(amount: float | Decimal) -> str:
    """An amount with at least six decimals and nine significant digits, rounded half to even.

    Three decimals exactly would be read as thousands where a comma is the decimal sign, so there are never
    exactly three.

    Raises
    ------
    ValueError
        The amount is not finite: an unknown price is an error, never a number.

    Examples
    --------
    >>> money(0.34), money(1234.5), money(3.4e-7)
    ('0.340000000', '1234.500000', '0.000000340000000')
    """
    if not amount:
        return _NOTHING % amount
    if isinstance(amount, float) and _POWERS_OF_TEN[0] <= abs(amount) < _POWERS_OF_TEN[-1]:
        form, finer = _FORMS[bisect_right(_POWERS_OF_TEN, abs(amount)) - 1]
        # Halfway between two amounts is only what ends in a five one decimal later, and in nothing else.
        exact = finer % amount
        if exact[-1] != "5" or float(exact) != amount:
            return form % amount
    return _rounded(Decimal(amount) if isinstance(amount, Decimal) else Decimal(repr(float(amount))))


def _rounded(exact: Decimal) -> str:
    if not exact.is_finite():
        raise ValueError(f"{exact} is not an amount of money")
    decimals = _decimals(exact.adjusted())
    rounded = exact.quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_HALF_EVEN, context=_EXACT)
    return format(rounded, "f")
