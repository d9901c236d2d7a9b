"""Published prices of tokens, as observed."""

from dataclasses import dataclass
from datetime import date

from pydantic import Field

from costsvc.db.entries import ApiPrice
from costsvc.db.names import Index, normalised
from costsvc.db.prices import api_prices_on
from costsvc.db.snapshot import Catalog
from costsvc.quoting.listing.common import SourceRow, known, mentions, one_of, sources
from costsvc.quoting.listing.parts import Ordered, part
from costsvc.quoting.request import Text


class ApiPriceFilter(Ordered):
    """Which published token prices."""

    model: Text | None = Field(None, description="Only this model, by id or alias.")
    provider: Text | None = Field(None, description="Only this provider.")
    q: Text | None = Field(None, description="Only prices whose id or model contains this.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiPriceRow:
    """A published price of tokens, as last observed before the day; what is not published is null."""

    id: str
    provider: str
    provider_model_id: str
    model: str | None
    input_usd_per_mtok: str | None
    cached_input_usd_per_mtok: str | None
    output_usd_per_mtok: str | None
    context_limit_tokens: int | None
    observed: date | None
    source_id: str
    notes: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiPriceDetail:
    """Every observation of one provider's model, the newest first."""

    id: str
    observations: tuple[ApiPriceRow, ...]
    sources: tuple[SourceRow, ...]


def list_api_prices(catalog: Catalog, wanted: ApiPriceFilter, today: date) -> list[ApiPriceRow]:
    """The newest published token prices not after the day, by id."""
    prices = catalog.content.api_prices
    model_id = None if wanted.model is None else catalog.model(wanted.model).id
    provider = one_of("provider", wanted.provider, (price.provider for price in prices), "/api-prices")
    matching = [
        price for price in prices if model_id in (None, price.model_id) and provider in (None, price.provider)
    ]
    rows = sorted(map(_api_price_row, api_prices_on(matching, wanted.as_of or today)), key=lambda row: row.id)
    return part((row for row in rows if mentions(wanted.q, (row.id, row.model or ""))), wanted, ApiPriceRow)


def show_api_price(catalog: Catalog, id: str) -> ApiPriceDetail:
    """Every observation of one provider's model."""
    found: dict[str, list[ApiPrice]] = {}
    for price in catalog.content.api_prices:
        found.setdefault(_api_price_id(price), []).append(price)
    index = Index(
        "API price", ((id, (), (id, group)) for id, group in found.items()), listed_at="/api-prices"
    )
    found_id, observations = index.find(id)
    newest_first = sorted(observations, key=lambda price: price.observed or date.min, reverse=True)
    return ApiPriceDetail(
        id=found_id,
        observations=tuple(map(_api_price_row, newest_first)),
        sources=sources(catalog, (price.source_id for price in newest_first)),
    )


def _api_price_row(price: ApiPrice) -> ApiPriceRow:
    return ApiPriceRow(
        id=_api_price_id(price),
        provider=price.provider,
        provider_model_id=price.provider_model_id,
        model=price.model_id,
        input_usd_per_mtok=known(price.input_usd_per_mtok),
        cached_input_usd_per_mtok=known(price.cached_input_usd_per_mtok),
        output_usd_per_mtok=known(price.output_usd_per_mtok),
        context_limit_tokens=price.context_limit_tokens,
        observed=price.observed,
        source_id=price.source_id,
        notes=price.notes,
    )


def _api_price_id(price: ApiPrice) -> str:
    return normalised(f"{price.provider}/{price.provider_model_id}")
