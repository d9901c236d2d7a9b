"""Money and plain numbers as a reader gets them: decimal text, never exponents, never three decimals."""

from decimal import ROUND_HALF_EVEN, Context, Decimal

LEAST_DECIMALS = 6
SIGNIFICANT_DIGITS = 9
# The largest number has 309 digits before the point.
_EXACT = Context(prec=400)


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
    exact = Decimal(amount) if isinstance(amount, Decimal) else Decimal(repr(float(amount)))
    if not exact.is_finite():
        raise ValueError(f"{amount} is not an amount of money")
    decimals = LEAST_DECIMALS
    if exact:
        decimals = max(LEAST_DECIMALS, SIGNIFICANT_DIGITS - 1 - exact.adjusted())
    rounded = exact.quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_HALF_EVEN, context=_EXACT)
    return format(rounded, "f")
