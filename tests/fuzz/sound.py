"""What must hold of every answer, whatever was asked."""

import math
from decimal import Decimal
from typing import Any, Final

from costsvc.api.json_text import to_json

_PRICED: Final = ("input", "cached_input", "output", "blended")
# Texts of money are rounded to nine digits.
_ROUNDING: Final = 1e-6


def is_sound(answer: Any) -> None:
    """Write an answer as the service does, which fails on a number that is not finite and on half a character."""
    to_json(answer)


def is_sound_quote(answer: Any) -> None:
    """Assert the laws of a quote: positive finite prices within their bands, which times tokens are the cost."""
    is_sound(answer)
    prices, request = answer["prices"], answer["request"]
    for name in _PRICED:
        if prices[name] is None:
            continue
        low, price, high = (float(prices[name][key]) for key in ("low", "usd_per_mtok", "high"))
        assert math.isfinite(high), (name, prices[name])
        assert 0 <= low <= price <= high, (name, prices[name])
    cost = Decimal(answer["cost"]["request_usd"])
    assert cost.is_finite()
    assert cost > 0
    assert answer["concurrency"]["limit"] > 0
    uncached = request["input_tokens"] - request["cached_input_tokens"]
    counted = {
        "input": uncached,
        "cached_input": request["cached_input_tokens"],
        "output": request["output_tokens"],
    }
    spent = (
        sum(tokens * float(prices[name]["usd_per_mtok"]) for name, tokens in counted.items() if tokens) / 1e6
    )
    assert math.isclose(spent, float(cost), rel_tol=_ROUNDING), (spent, cost)
