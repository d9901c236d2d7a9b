"""What one file alone cannot know: that everything it names exists, and that a spelling means one entry."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Protocol, TypeVar

from pydantic import BaseModel

from costsvc.db.names import normalised
from costsvc.errors import InvalidCatalogFile
from costsvc.ingest.api_prices import ApiPriceFile
from costsvc.ingest.entry import Entry
from costsvc.ingest.fx_rates import FxRatesFile
from costsvc.ingest.judgements import JudgementFile
from costsvc.ingest.kinds import DtypesFile, StacksFile, WeightPlansFile
from costsvc.ingest.lines import Document
from costsvc.ingest.models import ModelFile
from costsvc.ingest.owned import OwnedFile
from costsvc.ingest.prices import PriceFile

File_co = TypeVar("File_co", bound=BaseModel, covariant=True)
EntryFile = TypeVar("EntryFile", bound=Entry)

# Besides storage types, judgements about matrix products name the arithmetic they are of.
ARITHMETIC = frozenset({"fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp6", "fp4"})


class Read(Protocol[File_co]):
    """A file as its schema, and the document that knows its lines."""

    @property
    def document(self) -> Document: ...
    @property
    def file(self) -> File_co: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Ids that other files may name."""

    sources: frozenset[str]
    models: frozenset[str]
    gpus: frozenset[str]
    generations: frozenset[str]
    dtypes: frozenset[str]
    plans: frozenset[str]
    stacks: frozenset[str]
    providers: frozenset[str]


def ids_are_unique(document: Document, field: str, ids: Sequence[str]) -> None:
    for position, id in enumerate(ids):
        if id in ids[:position]:
            raise _refusal(document, (field, position, "id"), f"'{id}' stands twice")


def short_files_name_what_exists(
    known: Known, dtypes: Read[DtypesFile], plans: Read[WeightPlansFile], stacks: Read[StacksFile]
) -> None:
    for n, dtype in enumerate(dtypes.file.dtypes):
        _exists(dtypes.document, ("dtypes", n, "source"), dtype.source, known.sources)
    for n, plan in enumerate(plans.file.weight_plans):
        _exists(plans.document, ("weight_plans", n, "source"), plan.source, known.sources)
        for part in ("attention", "ffn", "experts", "embedding", "other"):
            _exists(plans.document, ("weight_plans", n, part), getattr(plan, part), known.dtypes)
    for n, stack in enumerate(stacks.file.stacks):
        place = ("stacks", n)
        _exists(stacks.document, (*place, "source"), stack.source, known.sources)
        for m, pair in enumerate(stack.without_kernel):
            _exists(stacks.document, (*place, "without_kernel", m, "dtype"), pair.dtype, known.dtypes)
            where = (*place, "without_kernel", m, "generation")
            _exists(stacks.document, where, pair.generation, known.generations)


def models_name_what_exists(known: Known, models: Iterable[Read[ModelFile]]) -> None:
    for read in models:
        _exists(read.document, ("released_weights",), read.file.released_weights, known.plans)


def prices_name_what_exists(known: Known, prices: Iterable[Read[PriceFile]]) -> None:
    seen: dict[str, str] = {}
    for read in prices:
        _exists(read.document, ("provider",), read.file.provider, known.providers)
        _one_file_per_provider(read.document, read.file.provider, seen)
        for n, offer in enumerate(read.file.offers):
            _exists(read.document, ("offers", n, "gpu"), offer.gpu, known.gpus)
        for field in ("offers", "offers_of_other_gpus"):
            for n, offer in enumerate(getattr(read.file, field)):
                for m, price in enumerate(offer.prices):
                    _exists(read.document, (field, n, "prices", m, "source"), price.source, known.sources)


def api_prices_name_what_exists(known: Known, api_prices: Iterable[Read[ApiPriceFile]]) -> None:
    seen: dict[str, str] = {}
    for read in api_prices:
        _exists(read.document, ("provider",), read.file.provider, known.providers)
        _one_file_per_provider(read.document, read.file.provider, seen)
        for n, observation in enumerate(read.file.observations):
            place = ("observations", n)
            _exists(read.document, (*place, "source"), observation.source, known.sources)
            for m, price in enumerate(observation.models):
                if price.model is not None:
                    _exists(read.document, (*place, "models", m, "model"), price.model, known.models)


def owned_gpus_exist(known: Known, owned: Read[OwnedFile]) -> None:
    for n, purchase in enumerate(owned.file.purchases):
        _exists(owned.document, ("purchases", n, "gpu"), purchase.gpu, known.gpus)
        _exists(owned.document, ("purchases", n, "source"), purchase.source, known.sources)
    for n, constant in enumerate(owned.file.facility):
        _exists(owned.document, ("facility", n, "source"), constant.source, known.sources)


def fx_rates_have_a_source(known: Known, fx_rates: Iterable[Read[FxRatesFile]]) -> None:
    for read in fx_rates:
        _exists(read.document, ("source",), read.file.source, known.sources)


def scopes_exist(known: Known, judged: Iterable[Read[JudgementFile]]) -> None:
    """Scopes name what exists, and no two judgements of a name claim the same scope."""
    there = {
        "gpu": known.gpus,
        "generation": known.generations,
        "stack": known.stacks,
        "dtype": known.dtypes | ARITHMETIC,
    }
    claimed: dict[tuple[str, frozenset[tuple[str, str]]], str] = {}
    for read in judged:
        for n, judgement in enumerate(read.file.judgements):
            for key, value in judgement.scope.items():
                if key in there:
                    _exists(read.document, ("judgements", n, "scope", key), value, there[key])
            claim = (judgement.name, frozenset(judgement.scope.items()))
            if claim in claimed:
                complaint = f"'{judgement.name}' already has a value for this scope in {claimed[claim]}"
                raise _refusal(read.document, ("judgements", n, "name"), complaint)
            claimed[claim] = read.document.path


def aliases_mean_one_entry(
    reads: Sequence[Read[EntryFile]], also: Callable[[EntryFile], Iterable[str]]
) -> None:
    """Refuse a spelling of two entries, unless each lists it as ambiguous; and one listed so by one alone."""
    owners: dict[str, str] = {normalised(read.file.id): read.file.id for read in reads}
    ambiguous: dict[str, list[str]] = {}
    for read in reads:
        for alias in read.file.ambiguous_aliases:
            ambiguous.setdefault(normalised(alias), []).append(read.file.id)
    for read in reads:
        id = read.file.id
        for n, alias in enumerate(read.file.ambiguous_aliases):
            if len(ambiguous[normalised(alias)]) < 2:
                complaint = f"'{alias}' means no other entry; list it under aliases"
                raise _refusal(read.document, ("ambiguous_aliases", n), complaint)
        named: list[tuple[tuple[Hashable, ...], str]]
        named = [(("aliases", n), alias) for n, alias in enumerate(read.file.aliases)]
        named += [(("name",), spelling) for spelling in also(read.file)]
        for place, alias in named:
            for spelling in {normalised(alias), normalised(alias.rpartition("/")[2])}:
                others = [*ambiguous.get(spelling, []), owners.setdefault(spelling, id)]
                if other := next((one for one in others if one != id), None):
                    raise _refusal(read.document, place, f"'{alias}' already means {other}")


def _exists(document: Document, place: Sequence[Hashable], id: str, known: frozenset[str]) -> None:
    if id not in known:
        near = get_close_matches(id, sorted(known), n=3)
        hint = f"; nearest: {', '.join(near)}" if near else ""
        raise _refusal(document, place, f"there is no '{id}' in the catalog{hint}")


def _one_file_per_provider(document: Document, provider: str, seen: dict[str, str]) -> None:
    if (first := seen.setdefault(provider, document.path)) != document.path:
        raise _refusal(document, ("provider",), f"'{provider}' has its prices in {first}")


def _refusal(document: Document, place: Sequence[Hashable], complaint: str) -> InvalidCatalogFile:
    field = ".".join(str(part) for part in place)
    return InvalidCatalogFile(document.path, complaint, line=document.line_of(place), field=field)
