"""Reference rates of currencies."""

from costsvc.api.lists import entry_of, list_of
from costsvc.quoting.listing.fx_rates import FxRateFilter, list_fx_rates, show_fx_rate
from costsvc.quoting.tables.listings import FX_RATES

get_fx_rates = list_of(
    "/fx-rates",
    list_fx_rates,
    wanted=FxRateFilter,
    columns=FX_RATES,
    answers="FxRates",
    summary="What a US dollar is in other currencies on the day",
)
get_fx_rate = entry_of(
    "/fx-rates", show_fx_rate, answers="FxRate", summary="Every rate of a currency and its sources"
)
