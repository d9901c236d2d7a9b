"""Files of published token prices: what was observed, from which source, on which day."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from costsvc.db import entries
from costsvc.ingest.entry import Count, Day, Money, Slug, Strict, Text, mistake


class _Figures(Strict):
    """Prices of one tier. A price that the source lacks, or prints as zero, is left out."""

    input_usd_per_mtok: Money | None = None
    cached_input_usd_per_mtok: Money | None = None
    output_usd_per_mtok: Money | None = None


class LongTierFields(_Figures):
    """What all tokens of a request cost once its prompt is longer."""

    above_tokens: Count


class ApiPriceFields(_Figures):
    """One model at one seller; `long_tiers` are dearer prices of long prompts, the shortest first."""

    id: Text
    model: Slug | None = None
    context_limit_tokens: Count | None = None
    long_tiers: list[LongTierFields] = Field(default_factory=list)
    excluded_reason: Text | None = None
    notes: Text | None = None

    @model_validator(mode="after")
    def tiers_rise(self) -> Self:
        edges = [tier.above_tokens for tier in self.long_tiers]
        ends = [*edges, *([self.context_limit_tokens] if self.context_limit_tokens else [])]
        if self.long_tiers and ends != sorted(set(ends)):
            raise mistake(
                f"Tiers begin at {edges}; they rise, and end before context_limit_tokens", "long_tiers"
            )
        return self


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
            record
            for seen in self.observations
            for price in seen.models
            for record in _records(provider_name, seen, price)
        )


def _records(provider_name: str, seen: Observation, price: ApiPriceFields) -> Iterator[entries.ApiPrice]:
    """A price and its long tiers, each with the context that it ends at, so that the fitting one can be picked."""
    ends = [*(tier.above_tokens for tier in price.long_tiers), price.context_limit_tokens]
    base = _record(provider_name, seen, price)
    yield replace(base, context_limit_tokens=ends[0])
    for tier, end in zip(price.long_tiers, ends[1:], strict=True):
        note = f"the price of prompts longer than {tier.above_tokens:,} tokens"
        yield replace(
            base,
            provider_model_id=f"{price.id}{entries.TIER_MARK}{tier.above_tokens:,} tokens)",
            input_usd_per_mtok=tier.input_usd_per_mtok,
            cached_input_usd_per_mtok=tier.cached_input_usd_per_mtok,
            output_usd_per_mtok=tier.output_usd_per_mtok,
            context_limit_tokens=end,
            notes="; ".join([note, *([base.notes] if base.notes else [])]),
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
