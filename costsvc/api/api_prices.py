"""Published prices of tokens."""

from costsvc.api.lists import entry_of, list_of
from costsvc.quoting.listing.api_prices import ApiPriceFilter, list_api_prices, show_api_price
from costsvc.quoting.tables.listings import API_PRICES

get_api_prices = list_of(
    "/api-prices",
    list_api_prices,
    wanted=ApiPriceFilter,
    columns=API_PRICES,
    answers="ApiPrices",
    summary="Published token prices",
)
get_api_price = entry_of(
    "/api-prices",
    lambda catalog, id, _day: show_api_price(catalog, id),
    answers="ApiPrice",
    summary="Every observation of one published price",
)
