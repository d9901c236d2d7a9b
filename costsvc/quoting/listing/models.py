"""Models and their shapes."""

from dataclasses import dataclass
from datetime import date
from typing import Any

import msgspec
from pydantic import Field

from costsvc.db.entries import ModelEntry
from costsvc.db.snapshot import Catalog
from costsvc.engine.parameters import active_parameter_count, parameter_count
from costsvc.quoting.listing.common import SourceRow, facts, mentions, one_of
from costsvc.quoting.listing.parts import Ordered, part
from costsvc.quoting.request import Text


class ModelFilter(Ordered):
    """Which models."""

    family: Text | None = Field(None, description="Only this family.")
    q: Text | None = Field(None, description="Only models whose id, name or alias contains this.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRow:
    """A model in a list."""

    id: str
    name: str
    family: str
    hf_id: str | None
    released: date | None
    licence: str | None
    published_parameters: int | None
    layers: int
    hidden_size: int
    max_context_tokens: int
    released_weights: str
    aliases: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDetail(ModelRow):
    """A model with its shapes and where each was read."""

    computed_parameters: int
    active_parameters: int
    parameter_difference_reason: str | None
    notes: str | None
    spec: dict[str, Any]
    sources: tuple[SourceRow, ...]


def list_models(catalog: Catalog, wanted: ModelFilter) -> list[ModelRow]:
    """Models, by id."""
    family = one_of("family", wanted.family, (entry.family for entry in catalog.models.values()), "/models")
    rows = (
        ModelRow(**_model_row(entry))
        for _, entry in sorted(catalog.models.items())
        if family in (None, entry.family)
        and mentions(wanted.q, (entry.id, entry.name, entry.hf_id or "", *entry.aliases))
    )
    return part(rows, wanted, ModelRow)


def show_model(catalog: Catalog, text: str) -> ModelDetail:
    """One model, by id or alias."""
    entry = catalog.model(text)
    return ModelDetail(
        **_model_row(entry),
        computed_parameters=parameter_count(entry.spec),
        active_parameters=active_parameter_count(entry.spec),
        parameter_difference_reason=entry.parameter_difference_reason,
        notes=entry.notes,
        spec=msgspec.to_builtins(entry.spec),
        sources=facts(catalog, entry.fact_sources),
    )


def _model_row(entry: ModelEntry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "name": entry.name,
        "family": entry.family,
        "hf_id": entry.hf_id,
        "released": entry.released,
        "licence": entry.licence,
        "published_parameters": entry.published_parameters,
        "layers": entry.spec.layers,
        "hidden_size": entry.spec.hidden_size,
        "max_context_tokens": entry.spec.max_context_tokens,
        "released_weights": entry.released_weights,
        "aliases": entry.aliases,
    }
