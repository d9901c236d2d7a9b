"""Token prices: pydantic's genai-prices, as the installed version carries them or as published since."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from importlib.metadata import version
from typing import Final

from genai_prices import UpdatePrices
from genai_prices.data import providers as carried
from genai_prices.types import Provider, TieredPrices

from costsvc.errors import InvalidRequest
from costsvc.ingest.feeds.published import Published, PublishedTokens, known_amount

ID: Final = "genai-prices"
SHOWN_AT: Final = "https://github.com/pydantic/genai-prices"
_HTTPS: Final = "https://"


def read(place: str | None) -> Published:
    """Token prices in force now.

    Parameters
    ----------
    place : str or None
        The https address of a newer list in the library's own format; None: the one that is installed.

    Raises
    ------
    InvalidRequest
        The address answers no such list.
    """
    if place is None:
        return published(carried, locator=f"version {version(ID)}")
    if not place.startswith(_HTTPS):
        raise InvalidRequest(
            f"--from is '{place}'; this feed reads an https address of a list that the library publishes. "
            "Without --from it reads the list that is installed.",
            field="from",
        )
    try:
        fetched = UpdatePrices(url=place).fetch()
    except Exception as error:
        # The library hands on whatever its transport and its schema raise.
        raise InvalidRequest(f"{place} cannot be read: {error}.", field="from") from error
    return published(fetched.providers if fetched else (), locator=place)


def published(providers: Iterable[Provider], *, locator: str) -> Published:
    """The standard prices of every model; of tiers and of hours of the day, the base."""
    now = datetime.now(UTC)
    return Published(
        source_id=ID,
        source={
            "title": "pydantic/genai-prices",
            "url": SHOWN_AT,
            "locator": locator,
            "kind": "third-party",
        },
        tokens=tuple(tokens for provider in providers for tokens in _of_provider(provider, now)),
    )


def _of_provider(provider: Provider, now: datetime) -> Iterator[PublishedTokens]:
    for model in provider.models:
        prices = model.get_prices(now)
        yield PublishedTokens(
            provider=provider.id,
            provider_model_id=model.id,
            input_usd_per_mtok=_base(prices.input_mtok),
            cached_input_usd_per_mtok=_base(prices.cache_read_mtok),
            output_usd_per_mtok=_base(prices.output_mtok),
            context_limit_tokens=model.context_window,
        )


def _base(price: Decimal | TieredPrices | None) -> Decimal | None:
    return known_amount(price.base if isinstance(price, TieredPrices) else price)
