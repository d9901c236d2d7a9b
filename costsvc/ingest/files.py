"""The whole catalog from its files. Nothing is loaded of a catalog that has one mistake."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from pydantic import BaseModel

from costsvc.db import entries
from costsvc.errors import InvalidCatalogFile
from costsvc.ingest import checks
from costsvc.ingest.api_prices import ApiPriceFile
from costsvc.ingest.entry import Entry, validated
from costsvc.ingest.fx_rates import FxRatesFile
from costsvc.ingest.gpus import GpuFile
from costsvc.ingest.judgements import JudgementFile
from costsvc.ingest.kinds import DtypesFile, SourcesFile, StacksFile, WeightPlansFile
from costsvc.ingest.lines import Document, read_document
from costsvc.ingest.models import ModelFile
from costsvc.ingest.owned import JUDGED, OwnedFile
from costsvc.ingest.prices import PriceFile
from costsvc.ingest.profiles import ProfileFile
from costsvc.ingest.providers import ProvidersFile
from costsvc.ingest.root import catalog_root

__all__ = ["Read", "catalog_root", "read_catalog", "read_providers"]

File = TypeVar("File", bound=BaseModel)
EntryFile = TypeVar("EntryFile", bound=Entry)


class Read(NamedTuple, Generic[File]):
    """A file as its schema, and the document that knows its lines."""

    document: Document
    file: File


def read_catalog(root: Path) -> entries.CatalogContent:
    """Read, check and convert every file below `root`.

    Raises
    ------
    InvalidCatalogFile
        With the path, line and field of the first mistake.
    """
    shared = _one(root, "sources.yaml", SourcesFile)
    dtypes = _one(root, "dtypes.yaml", DtypesFile)
    plans = _one(root, "weight_plans.yaml", WeightPlansFile)
    stacks = _one(root, "stacks.yaml", StacksFile)
    providers = _one(root, "providers.yaml", ProvidersFile)
    owned = _one(root, "owned.yaml", OwnedFile)
    fx_rates = list(_many(root, "fx_rates.yaml", FxRatesFile))
    models = _entries(root, "models", ModelFile)
    gpus = _entries(root, "gpus", GpuFile)
    profiles = _entries(root, "profiles", ProfileFile)
    prices = list(_many(root, "prices/*.yaml", PriceFile))
    api_prices = list(_many(root, "api_prices/*.yaml", ApiPriceFile))
    judged = list(_many(root, "calibration/*.yaml", JudgementFile))

    names = providers.file.names()
    sources = [source.record(source.id) for source in shared.file.sources]
    for read in models:
        sources += read.file.source_records("models")
    for gpu in gpus:
        sources += gpu.file.source_records("gpus")
    for profile in profiles:
        sources += profile.file.source_records("profiles")
    sources += [one.file.source.record(_judgement_source(one.document)) for one in judged]

    known = checks.Known(
        sources=frozenset(source.id for source in sources),
        models=frozenset(read.file.id for read in models),
        gpus=frozenset(gpu.file.id for gpu in gpus),
        generations=frozenset(gpu.file.generation for gpu in gpus),
        dtypes=frozenset(dtype.id for dtype in dtypes.file.dtypes),
        plans=frozenset(plan.id for plan in plans.file.weight_plans),
        stacks=frozenset(stack.id for stack in stacks.file.stacks),
        providers=frozenset(names),
    )
    checks.ids_are_unique(shared.document, "sources", [one.id for one in shared.file.sources])
    checks.ids_are_unique(dtypes.document, "dtypes", [one.id for one in dtypes.file.dtypes])
    checks.ids_are_unique(plans.document, "weight_plans", [one.id for one in plans.file.weight_plans])
    checks.ids_are_unique(stacks.document, "stacks", [one.id for one in stacks.file.stacks])
    checks.short_files_name_what_exists(known, dtypes, plans, stacks)
    checks.models_name_what_exists(known, models)
    checks.prices_name_what_exists(known, prices)
    checks.api_prices_name_what_exists(known, api_prices)
    checks.owned_gpus_exist(known, owned)
    checks.fx_rates_have_a_source(known, fx_rates)
    checks.scopes_exist(known, judged)
    checks.aliases_mean_one_entry(models, lambda file: (file.name, *([file.hf_id] if file.hf_id else [])))
    checks.aliases_mean_one_entry(gpus, lambda file: (file.name,))
    checks.aliases_mean_one_entry(profiles, lambda file: (file.name,))

    gpu_records = tuple(gpu.file.record() for gpu in gpus)
    judgements = tuple(
        record for one in judged for record in one.file.records(_judgement_source(one.document))
    )
    return entries.CatalogContent(
        sources=tuple(sources),
        models=tuple(read.file.record() for read in models),
        gpus=gpu_records,
        offers=(
            *(offer for one in prices for offer in one.file.records(names[one.file.provider])),
            *_owned(owned, gpu_records, judgements),
        ),
        api_prices=tuple(price for one in api_prices for price in one.file.records(names[one.file.provider])),
        judgements=judgements,
        dtypes=tuple(dtype.record() for dtype in dtypes.file.dtypes),
        weight_plans=tuple(plan.record() for plan in plans.file.weight_plans),
        stacks=tuple(stack.record() for stack in stacks.file.stacks),
        profiles=tuple(profile.file.record() for profile in profiles),
        fx_rates=tuple(rate for one in fx_rates for rate in one.file.records()),
    )


def read_providers(root: Path) -> ProvidersFile:
    """Who sells, with every spelling.

    Raises
    ------
    InvalidCatalogFile
        With the path, line and field of the first mistake.
    """
    return _one(root, "providers.yaml", ProvidersFile).file


def _one(root: Path, name: str, schema: type[File]) -> Read[File]:
    path = root / name
    if not path.is_file():
        raise InvalidCatalogFile(name, "is missing")
    document = read_document(path, name)
    return Read(document, validated(document, schema))


def _many(root: Path, pattern: str, schema: type[File]) -> Iterator[Read[File]]:
    for path in sorted(root.glob(pattern)):
        yield _one(root, path.relative_to(root).as_posix(), schema)


def _entries(root: Path, folder: str, schema: type[EntryFile]) -> list[Read[EntryFile]]:
    """Files of a folder, each named after the id in it, so that no id can stand twice."""
    found = list(_many(root, f"{folder}/*.yaml", schema))
    for read in found:
        if Path(read.document.path).name != f"{read.file.id}.yaml":
            raise InvalidCatalogFile(
                read.document.path,
                f"is '{read.file.id}', so the file has to be called {read.file.id}.yaml",
                line=read.document.line_of(("id",)),
                field="id",
            )
    return found


def _judgement_source(document: Document) -> str:
    """A calibration file is its own source: `calibration/vllm.yaml` is `calibration/vllm`."""
    return document.path.removesuffix(".yaml")


def _owned(
    owned: Read[OwnedFile], gpus: Iterable[entries.GpuEntry], judgements: Iterable[entries.Judgement]
) -> tuple[entries.Offer, ...]:
    judged = {one.name: one.value for one in judgements if one.name in JUDGED and not one.scope}
    if missing := sorted(set(JUDGED) - set(judged)):
        raise InvalidCatalogFile(
            owned.document.path, f"no judgement says how to price owned GPUs: {', '.join(missing)}"
        )
    try:
        return owned.file.records({gpu.id: gpu for gpu in gpus}, judged)
    except ValueError as error:
        raise InvalidCatalogFile(
            owned.document.path, str(error), line=owned.document.line_of(("purchases",)), field="purchases"
        ) from error
