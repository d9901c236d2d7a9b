"""Models of the catalog."""

from costsvc.api.lists import entry_of, list_of
from costsvc.quoting.listing.models import ModelFilter, list_models, show_model
from costsvc.quoting.tables.listings import MODELS

get_models = list_of(
    "/models",
    lambda catalog, wanted, _day: list_models(catalog, wanted),
    wanted=ModelFilter,
    columns=MODELS,
    answers="Models",
    summary="Models",
)
get_model = entry_of(
    "/models",
    lambda catalog, id, _day: show_model(catalog, id),
    answers="Model",
    summary="A model and its shapes",
)
