"""Between catalog entries and table rows. No SQL: it says what a row holds, not how it gets there."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import fields
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Any, TypeAlias, TypeVar, cast

from pydantic import TypeAdapter

from costsvc.db import tables
from costsvc.db.entries import (
    ApiPrice,
    CatalogContent,
    DatedPrice,
    DtypeEntry,
    FactSource,
    FxRate,
    GpuEntry,
    Judgement,
    ModelEntry,
    Offer,
    ProfileEntry,
    Source,
    StackEntry,
    WeightPlanEntry,
)
from costsvc.engine.specs import DtypeSpec, GpuSpec, ModelSpec

Row: TypeAlias = dict[str, Any]
Rows: TypeAlias = dict[type[tables.Versioned], list[Row]]
Stored: TypeAlias = Mapping[type[tables.Versioned], Sequence[Mapping[str, Any]]]

Entry = TypeVar("Entry")

_MODEL_SPEC: TypeAdapter[ModelSpec] = TypeAdapter(ModelSpec)
_GPU_SPEC_COLUMNS = tuple(
    field.name for field in fields(GpuSpec) if field.name not in {"id", "dense_flops_per_s"}
)


def rows_of(content: CatalogContent) -> Rows:
    """The rows that hold a catalog."""
    sellers = {offer.provider for offer in content.offers}
    token_sellers = {price.provider for price in content.api_prices}
    return {
        tables.SourceRow: [_flat(source) for source in content.sources],
        tables.ModelRow: [_model_row(entry) for entry in content.models],
        tables.GpuRow: [_gpu_row(entry) for entry in content.gpus],
        tables.ProviderRow: [
            {"name": name, "sells_gpu_hours": name in sellers, "sells_tokens": name in token_sellers}
            for name in sorted(sellers | token_sellers)
        ],
        tables.OfferRow: [_flat(offer, without={"prices"}) for offer in content.offers],
        tables.OfferPriceRow: [
            {"offer_id": offer.id, **_flat(price)} for offer in content.offers for price in offer.prices
        ],
        tables.ApiPriceRow: [_flat(price) for price in content.api_prices],
        tables.JudgementRow: [
            {**_flat(entry), "scope": _scope_text(entry.scope)} for entry in content.judgements
        ],
        tables.DtypeRow: [_dtype_row(entry) for entry in content.dtypes],
        tables.WeightPlanRow: [_flat(plan, without={"aliases"}) for plan in content.weight_plans],
        tables.StackRow: [_stack_row(entry) for entry in content.stacks],
        tables.ProfileRow: [_flat(entry, without={"aliases", "fact_sources"}) for entry in content.profiles],
        tables.FxRateRow: [_flat(rate) for rate in content.fx_rates],
        tables.AliasRow: list(_alias_rows(content)),
        tables.FactSourceRow: [
            {"entry_kind": kind, "entry_id": entry.id, **_flat(fact)}
            for kind, entries in (
                ("model", content.models),
                ("gpu", content.gpus),
                ("profile", content.profiles),
            )
            for entry in entries
            for fact in entry.fact_sources
        ],
    }


def content_of(stored: Stored) -> CatalogContent:
    """The catalog that rows hold, its entries in order of id and their parts in order of name or day."""
    aliases = _by_entry(_sorted(stored, tables.AliasRow), lambda row: row["alias"])
    facts = _by_entry(_sorted(stored, tables.FactSourceRow), lambda row: _entry(FactSource, row))
    prices = _by_offer(stored[tables.OfferPriceRow])
    return CatalogContent(
        sources=_entries(stored, tables.SourceRow, lambda row: _entry(Source, row)),
        models=_entries(
            stored,
            tables.ModelRow,
            lambda row: _entry(
                ModelEntry,
                row,
                spec=_MODEL_SPEC.validate_python(row["spec"]),
                aliases=aliases("model", row["id"]),
                fact_sources=facts("model", row["id"]),
            ),
        ),
        gpus=_entries(
            stored,
            tables.GpuRow,
            lambda row: _entry(
                GpuEntry,
                row,
                spec=_entry(GpuSpec, row),
                aliases=aliases("gpu", row["id"]),
                fact_sources=facts("gpu", row["id"]),
                fields_not_confirmed=tuple(row["fields_not_confirmed"]),
            ),
        ),
        offers=_entries(
            stored,
            tables.OfferRow,
            lambda row: _entry(Offer, row, prices=prices.get(row["id"], ())),
        ),
        api_prices=_entries(stored, tables.ApiPriceRow, lambda row: _entry(ApiPrice, row)),
        judgements=_entries(
            stored,
            tables.JudgementRow,
            lambda row: _entry(Judgement, row, scope=tuple(json.loads(row["scope"]).items())),
        ),
        dtypes=_entries(
            stored,
            tables.DtypeRow,
            lambda row: DtypeEntry(
                spec=DtypeSpec(row["id"], row["value_bytes"], tuple(row["arithmetic"])),
                aliases=aliases("dtype", row["id"]),
                source_id=row["source_id"],
            ),
        ),
        weight_plans=_entries(
            stored,
            tables.WeightPlanRow,
            lambda row: _entry(WeightPlanEntry, row, aliases=aliases("weight_plan", row["id"])),
        ),
        stacks=_entries(
            stored,
            tables.StackRow,
            lambda row: _entry(
                StackEntry,
                row,
                aliases=aliases("stack", row["id"]),
                without_kernel=tuple(
                    (arithmetic, generation) for arithmetic, generation in row["without_kernel"]
                ),
            ),
        ),
        profiles=_entries(
            stored,
            tables.ProfileRow,
            lambda row: _entry(
                ProfileEntry,
                row,
                aliases=aliases("profile", row["id"]),
                fact_sources=facts("profile", row["id"]),
            ),
        ),
        fx_rates=_entries(stored, tables.FxRateRow, lambda row: _entry(FxRate, row)),
    )


def canonical(content: CatalogContent) -> CatalogContent:
    """The same catalog in the order in which it is read back."""
    return content_of(rows_of(content))


def fingerprint(row: Mapping[str, Any]) -> str:
    """Canonical text of a row: equal exactly where contents are, whatever the spelling of its numbers."""
    return json.dumps(_plain(row), sort_keys=True, ensure_ascii=False)


def content_hash(rows: Rows) -> str:
    """SHA-256 of a catalog, whatever the order of its entries."""
    digest = hashlib.sha256()
    for table, table_rows in rows.items():
        for text in sorted(map(fingerprint, table_rows)):
            digest.update(f"{table.__tablename__} {text}\n".encode())
    return digest.hexdigest()


def identity(table: type[tables.Versioned], row: Mapping[str, Any]) -> tuple[str, ...]:
    """What tells a row apart from the others of its table in one revision."""
    return tuple("" if row[name] is None else str(row[name]) for name in table.identity)


def _model_row(entry: ModelEntry) -> Row:
    spec = _MODEL_SPEC.dump_python(entry.spec, mode="json")
    return {**_flat(entry, without={"aliases", "fact_sources"}), "spec": spec}


def _gpu_row(entry: GpuEntry) -> Row:
    return {
        **_flat(entry, without={"spec", "aliases", "fact_sources"}),
        **{name: getattr(entry.spec, name) for name in _GPU_SPEC_COLUMNS},
        "dense_flops_per_s": {name: float(rate) for name, rate in entry.spec.dense_flops_per_s.items()},
        "fields_not_confirmed": sorted(entry.fields_not_confirmed),
    }


def _dtype_row(entry: DtypeEntry) -> Row:
    spec = entry.spec
    return {
        "id": spec.id,
        "value_bytes": spec.value_bytes,
        "arithmetic": list(spec.arithmetic),
        "source_id": entry.source_id,
    }


def _stack_row(entry: StackEntry) -> Row:
    pairs = sorted(entry.without_kernel)
    return {**_flat(entry, without={"aliases"}), "without_kernel": [list(pair) for pair in pairs]}


def _alias_rows(content: CatalogContent) -> Iterable[Row]:
    named: list[tuple[str, str, tuple[str, ...]]] = [
        *(("model", entry.id, entry.aliases) for entry in content.models),
        *(("gpu", entry.id, entry.aliases) for entry in content.gpus),
        *(("dtype", entry.spec.id, entry.aliases) for entry in content.dtypes),
        *(("weight_plan", entry.id, entry.aliases) for entry in content.weight_plans),
        *(("stack", entry.id, entry.aliases) for entry in content.stacks),
        *(("profile", entry.id, entry.aliases) for entry in content.profiles),
    ]
    for kind, id, aliases in named:
        for alias in aliases:
            yield {"entry_kind": kind, "entry_id": id, "alias": alias}


def _scope_text(scope: Iterable[tuple[str, str]]) -> str:
    return json.dumps(dict(scope), sort_keys=True, ensure_ascii=False)


def _flat(entry: Any, *, without: Set[str] = frozenset()) -> Row:
    """A row with one column per field."""
    return {field.name: getattr(entry, field.name) for field in fields(entry) if field.name not in without}


def _entry(kind: Callable[..., Entry], row: Mapping[str, Any], **parts: Any) -> Entry:
    """An entry with each field from the column of its name, but for `parts`."""
    return kind(**{name: parts[name] if name in parts else row[name] for name in _names(kind)})


@cache
def _names(kind: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(cast("Any", kind)))


def _entries(
    stored: Stored, table: type[tables.Versioned], build: Callable[[Mapping[str, Any]], Entry]
) -> tuple[Entry, ...]:
    return tuple(build(row) for row in _sorted(stored, table))


def _sorted(stored: Stored, table: type[tables.Versioned]) -> list[Mapping[str, Any]]:
    """Rows in order of identity; those that share one in order of their contents."""
    times = Counter(identity(table, row) for row in stored[table])

    def place(row: Mapping[str, Any]) -> tuple[tuple[str, ...], str]:
        name = identity(table, row)
        return name, fingerprint(row) if times[name] > 1 else ""

    return sorted(stored[table], key=place)


def _by_offer(rows: Iterable[Mapping[str, Any]]) -> dict[str, tuple[DatedPrice, ...]]:
    """Prices of each offer in order of their days. They may number a million, so nothing is done twice."""
    found: dict[str, list[DatedPrice]] = {}
    for row in rows:
        price = DatedPrice(
            first_day=row["first_day"], usd_per_gpu_hour=row["usd_per_gpu_hour"], source_id=row["source_id"]
        )
        found.setdefault(row["offer_id"], []).append(price)
    return {
        offer: tuple(sorted(prices, key=lambda price: price.first_day)) for offer, prices in found.items()
    }


def _by_entry(
    rows: Iterable[Mapping[str, Any]], build: Callable[[Mapping[str, Any]], Entry]
) -> Callable[[str, str], tuple[Entry, ...]]:
    """Parts of entries, to be asked for by kind and id."""
    parts: dict[tuple[str, str], list[Entry]] = {}
    for row in rows:
        parts.setdefault((row["entry_kind"], row["entry_id"]), []).append(build(row))
    return lambda kind, id: tuple(parts.get((kind, id), ()))


def _plain(value: Any) -> Any:
    match value:
        case Decimal():
            digits = format(value, "f")
            return digits.rstrip("0").rstrip(".") if "." in digits else digits
        case date():
            return value.isoformat()
        case float() if value.is_integer():
            return int(value)
        case Mapping():
            return {name: _plain(part) for name, part in value.items()}
        case list() | tuple():
            return [_plain(part) for part in value]
        case _:
            return value
