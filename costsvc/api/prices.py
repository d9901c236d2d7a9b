"""Offers of GPU hours."""

from costsvc.api.lists import entry_of, list_of
from costsvc.quoting.listing.prices import PriceFilter, list_prices, show_price
from costsvc.quoting.tables.listings import PRICES

get_prices = list_of(
    "/prices",
    list_prices,
    wanted=PriceFilter,
    columns=PRICES,
    answers="Prices",
    summary="Offers of GPU hours with a price on the day",
)
get_price = entry_of("/prices", show_price, answers="Price", summary="An offer with its history and sources")
