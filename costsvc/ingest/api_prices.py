"""Files of published token prices: what was observed, from which source, on which day."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from costsvc.db import entries
from costsvc.ingest.entry import Count, Day, Money, Slug, Strict, Text, mistake


class ApiPriceFields(Strict):
    """One model at one seller. A price that the source lacks, or prints as zero, is left out."""

    id: Text
    model: Slug | None = None
    input_usd_per_mtok: Money | None = None
    cached_input_usd_per_mtok: Money | None = None
    output_usd_per_mtok: Money | None = None
    context_limit_tokens: Count | None = None
    excluded_reason: Text | None = None
    notes: Text | None = None


class Observation(Strict):
    """What one source printed on one day."""

    source: Slug
    observed: Day | None = None
    precision: Literal["day", "month"] = "day"
    models: Annotated[list[ApiPriceFields], Field(min_length=1)]


class ApiPriceFile(Strict):
    """`api_prices/<provider>.yaml`."""

    provider: Slug
    observations: Annotated[list[Observation], Field(min_length=1)]

    @model_validator(mode="after")
    def a_source_speaks_once_a_day(self) -> Self:
        keys = [(one.source, one.observed) for one in self.observations]
        if len(keys) > len(set(keys)):
            raise mistake("Two observations are of the same source and day; join them", "observations")
        return self

    def records(self, provider_name: str) -> tuple[entries.ApiPrice, ...]:
        """The prices as stored."""
        return tuple(
            _record(provider_name, seen, price) for seen in self.observations for price in seen.models
        )


def _record(provider_name: str, seen: Observation, price: ApiPriceFields) -> entries.ApiPrice:
    """A price as stored. One that is surely wrong keeps its figures in the notes only."""
    notes = [price.notes] if price.notes else []
    if seen.precision == "month":
        notes.append("the source gives the month only")
    figures = {
        "input": price.input_usd_per_mtok,
        "cached input": price.cached_input_usd_per_mtok,
        "output": price.output_usd_per_mtok,
    }
    if price.excluded_reason is not None:
        printed = ", ".join(f"{name} {usd}" for name, usd in figures.items() if usd is not None)
        notes.insert(0, f"excluded: {price.excluded_reason} (printed: {printed})")
        figures = dict.fromkeys(figures, None)
    return entries.ApiPrice(
        provider=provider_name,
        provider_model_id=price.id,
        source_id=seen.source,
        observed=seen.observed,
        model_id=price.model,
        input_usd_per_mtok=figures["input"],
        cached_input_usd_per_mtok=figures["cached input"],
        output_usd_per_mtok=figures["output"],
        context_limit_tokens=price.context_limit_tokens,
        notes="; ".join(notes) or None,
    )
