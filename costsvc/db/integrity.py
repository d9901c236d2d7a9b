"""The last gate before a catalog is stored: what its entries name must be in it, and ids must be unique."""

from collections import Counter
from collections.abc import Iterator

from costsvc.db.entries import CatalogContent
from costsvc.db.rows import Rows, identity
from costsvc.errors import InvalidCatalogFile

_SHOWN = 5


def refuse_contradictions(content: CatalogContent, rows: Rows) -> None:
    """Raise unless a catalog is whole.

    Raises
    ------
    InvalidCatalogFile
        Something is there twice, or names what is not there; the first few are listed.
    """
    complaints = [*_twice(rows), *_dangling(content)]
    if complaints:
        more = f" … and {len(complaints) - _SHOWN} more" if len(complaints) > _SHOWN else ""
        raise InvalidCatalogFile("catalog", "; ".join(complaints[:_SHOWN]) + more)


def _twice(rows: Rows) -> Iterator[str]:
    for table, table_rows in rows.items():
        if table.repeats:
            continue
        counted = Counter(identity(table, row) for row in table_rows)
        yield from (
            f"{table.__tablename__} {' / '.join(name)} is there {times} times"
            for name, times in counted.items()
            if times > 1
        )


def _dangling(content: CatalogContent) -> Iterator[str]:
    there = {
        "source": {source.id for source in content.sources},
        "gpu": {entry.id for entry in content.gpus},
        "model": {entry.id for entry in content.models},
        "dtype": {entry.spec.id for entry in content.dtypes},
        "weight plan": {plan.id for plan in content.weight_plans},
    }
    for user, kind, id in (*_named_sources(content), *_named_entries(content)):
        if id not in there[kind]:
            yield f"{user} names {kind} '{id}', which is not in the catalog"


def _named_entries(content: CatalogContent) -> Iterator[tuple[str, str, str]]:
    """Who names which entry of which kind."""
    for entry in content.models:
        yield f"model {entry.id}", "weight plan", entry.released_weights
    for offer in content.offers:
        yield f"offer {offer.id}", "gpu", offer.gpu_id
    for price in content.api_prices:
        if price.model_id is not None:
            yield f"API price {price.provider} / {price.provider_model_id}", "model", price.model_id
    for plan in content.weight_plans:
        for dtype in (plan.attention, plan.ffn, plan.experts, plan.embedding, plan.other):
            yield f"weight plan {plan.id}", "dtype", dtype
    for stack in content.stacks:
        if stack.kv_beside_quantised is not None:
            yield f"stack {stack.id}", "dtype", stack.kv_beside_quantised


def _named_sources(content: CatalogContent) -> Iterator[tuple[str, str, str]]:
    for user, id in _citations(content):
        yield user, "source", id


def _citations(content: CatalogContent) -> Iterator[tuple[str, str]]:
    """Who cites which source."""
    described = (("model", content.models), ("gpu", content.gpus), ("profile", content.profiles))
    for kind, entries in described:
        for entry in entries:
            yield from ((f"{kind} {entry.id}", fact.source_id) for fact in entry.fact_sources)
    for offer in content.offers:
        yield from ((f"offer {offer.id}", price.source_id) for price in offer.prices)
    for price in content.api_prices:
        yield f"API price {price.provider} / {price.provider_model_id}", price.source_id
    for rate in content.fx_rates:
        yield f"rate of {rate.currency}", rate.source_id
    for judgement in content.judgements:
        yield f"judgement {judgement.name}", judgement.source_id
    for dtype in content.dtypes:
        yield f"dtype {dtype.spec.id}", dtype.source_id
    for stack in content.stacks:
        yield f"stack {stack.id}", stack.source_id
