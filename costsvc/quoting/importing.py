"""Models that arrive as a configuration: checked by the files' schema, kept beside what files say."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any, Final

from costsvc.db.entries import CatalogContent, ModelEntry
from costsvc.db.names import normalised
from costsvc.db.snapshot import Catalog
from costsvc.engine.parameters import active_parameter_count, parameter_count
from costsvc.errors import InvalidRequest
from costsvc.ingest.hugging_face.files import file_text, file_values
from costsvc.ingest.hugging_face.importing import ImportedModel

# Sources of what was posted are known by this beginning, so that loading the files anew keeps it.
POSTED_SOURCE: Final = "posted/models"


def named_in_catalog(catalog: Catalog, imported: ImportedModel) -> ImportedModel:
    """The model with its weight plan by the catalog's own id.

    Raises
    ------
    NotInCatalog
        There is no such weight plan.
    """
    plan = catalog.weight_plan(imported.file.released_weights).id
    return replace(imported, file=imported.file.model_copy(update={"released_weights": plan}))


def with_model(catalog: Catalog, imported: ImportedModel) -> CatalogContent:
    """The catalog with a new model.

    Raises
    ------
    NotInCatalog
        There is no such weight plan.
    InvalidRequest
        A model goes by one of its names already.
    """
    file = named_in_catalog(catalog, imported).file
    taken = {
        normalised(spelling): entry.id for entry in catalog.models.values() for spelling in _spellings(entry)
    }
    entry = file.record(POSTED_SOURCE)
    for spelling in _spellings(entry):
        if owner := taken.get(normalised(spelling)):
            raise InvalidRequest(
                f"'{spelling}' already means the model '{owner}'. A model never changes, so that past quotes stay "
                f"true: choose another id, name or alias; what was wrong is corrected in the catalog's files.",
                field="id",
            )
    content = catalog.content
    sources = (*content.sources, *file.source_records(POSTED_SOURCE))
    return replace(
        content,
        models=tuple(sorted((*content.models, entry), key=lambda one: one.id)),
        sources=tuple(sorted(sources, key=lambda one: one.id)),
    )


def keeping_posted_models(files: CatalogContent, stored: CatalogContent) -> CatalogContent:
    """What the files say, with the posted models whose names and weight plans still stand alone."""
    taken = {normalised(spelling) for entry in files.models for spelling in _spellings(entry)}
    plans = {plan.id for plan in files.weight_plans}
    kept = [
        entry
        for entry in stored.models
        if any(fact.source_id.startswith(f"{POSTED_SOURCE}/") for fact in entry.fact_sources)
        and entry.released_weights in plans
        and not any(normalised(one) in taken for one in _spellings(entry))
    ]
    named = {fact.source_id for entry in kept for fact in entry.fact_sources}
    sources = (*files.sources, *(source for source in stored.sources if source.id in named))
    return replace(
        files,
        models=tuple(sorted((*files.models, *kept), key=lambda entry: entry.id)),
        sources=tuple(sorted(sources, key=lambda source: source.id)),
    )


def import_answer(imported: ImportedModel, *, written: bool, revision: int | None) -> Mapping[str, Any]:
    """The model, what it was inferred from, and what stayed open."""
    file = imported.file
    spec = file.spec()
    published = file.published_parameters
    in_file = file.file_parameters()
    return {
        "id": file.id,
        "catalog_revision": revision,
        "written": written,
        "model": file_values(file),
        "parameters": {
            "computed": parameter_count(spec),
            "active": active_parameter_count(spec),
            "in_file": in_file,
            "published": None if published is None else int(published),
            "difference_share": None if published is None else in_file / published - 1,
        },
        "kv_values_per_token": _first_token_values(imported),
        "state_bytes_per_sequence": sum(
            mixer.state_bytes() for index in spec.pattern if (mixer := spec.groups[index].attention)
        ),
        "inferred": [asdict(one) for one in imported.inferred],
        "open": list(imported.open_points),
        "unused": list(imported.unused),
        "file": file_text(file),
    }


def _first_token_values(imported: ImportedModel) -> int:
    """Values that a token adds to the cache while no window is full. [values]"""
    spec = imported.file.spec()
    mixers = (spec.groups[index].attention for index in spec.pattern)
    return round(sum(float(mixer.kv_values(1.0)) for mixer in mixers if mixer))


def _spellings(entry: ModelEntry) -> Iterable[str]:
    repository = (entry.hf_id,) if entry.hf_id else ()
    every = (entry.id, entry.name, *entry.aliases, *repository)
    return dict.fromkeys((*every, *(one.rpartition("/")[2] for one in every)))
