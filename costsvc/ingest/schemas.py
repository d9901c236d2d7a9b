"""JSON schemas of the catalog's files, for editors. `python -m costsvc.ingest.schemas` writes them anew."""

import json
from pathlib import Path

from pydantic import BaseModel

from costsvc.ingest.api_prices import ApiPriceFile
from costsvc.ingest.files import catalog_root
from costsvc.ingest.fx_rates import FxRatesFile
from costsvc.ingest.gpus import GpuFile
from costsvc.ingest.judgements import JudgementFile
from costsvc.ingest.kinds import DtypesFile, SourcesFile, StacksFile, WeightPlansFile
from costsvc.ingest.knobs import KnobsFile
from costsvc.ingest.models import ModelFile
from costsvc.ingest.owned import OwnedFile
from costsvc.ingest.prices import PriceFile
from costsvc.ingest.profiles import ProfileFile
from costsvc.ingest.providers import ProvidersFile

FOLDER = ".schema"

SCHEMAS: dict[str, type[BaseModel]] = {
    "api_price": ApiPriceFile,
    "dtypes": DtypesFile,
    "fx_rates": FxRatesFile,
    "gpu": GpuFile,
    "judgements": JudgementFile,
    "knobs": KnobsFile,
    "model": ModelFile,
    "owned": OwnedFile,
    "price": PriceFile,
    "profile": ProfileFile,
    "providers": ProvidersFile,
    "sources": SourcesFile,
    "stacks": StacksFile,
    "weight_plans": WeightPlansFile,
}


def schema_text(schema: type[BaseModel]) -> str:
    """The schema as it is checked in."""
    return json.dumps(schema.model_json_schema(), indent=2, sort_keys=True) + "\n"


def write_schemas(root: Path) -> None:
    """Write every schema below the catalog's folder."""
    folder = root / FOLDER
    folder.mkdir(exist_ok=True)
    for name, schema in SCHEMAS.items():
        (folder / f"{name}.json").write_text(schema_text(schema), encoding="utf-8")


if __name__ == "__main__":
    write_schemas(catalog_root(None))
