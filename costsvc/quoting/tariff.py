"""What tokens cost at a seller: the rules of published tariffs, which genai-prices knows."""

from decimal import Decimal
from functools import cache, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from costsvc.db.entries import ApiPrice

if TYPE_CHECKING:
    from genai_prices.types import ModelPrice

_KEPT: Final = 2048


def usd_of_tokens(price: ApiPrice, *, uncached: float, cached: float, output: float) -> float:
    """The bill of one request; cached tokens cost what others do where they have no price of their own.

    Parameters
    ----------
    uncached, cached, output : float
        Tokens, not whole where they are means. [token]

    Returns
    -------
    float
        [USD]
    """
    counts = {
        "input_tokens": _exact(uncached) + _exact(cached),
        "cache_read_tokens": _exact(cached),
        "output_tokens": _exact(output),
    }
    bill = _tariff(price).calc_price(_library().Usage(**counts))
    return float(bill["total_price"])


@cache
def _library() -> Any:
    """Imported at the first bill: with its HTTP client it would be a third of a start."""
    return import_module("genai_prices.types")


# A price never changes; as many tariffs are kept as the catalog has prices of models that it knows.
@lru_cache(maxsize=_KEPT)
def _tariff(price: ApiPrice) -> "ModelPrice":
    tariff: ModelPrice = _library().ModelPrice(
        input_mtok=price.input_usd_per_mtok,
        cache_read_mtok=price.cached_input_usd_per_mtok,
        output_mtok=price.output_usd_per_mtok,
    )
    return tariff


def _exact(tokens: float) -> Decimal:
    return Decimal(repr(float(tokens)))
