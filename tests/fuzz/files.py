"""Catalog files with something changed. Files are the operator's own, but a mistake in one must be named."""

import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Final

from hypothesis import strategies as st
from pydantic import BaseModel

from costsvc.ingest.api_prices import ApiPriceFile
from costsvc.ingest.entry import validated
from costsvc.ingest.files import catalog_root
from costsvc.ingest.gpus import GpuFile
from costsvc.ingest.judgements import JudgementFile
from costsvc.ingest.lines import read_document
from costsvc.ingest.models import ModelFile
from costsvc.ingest.prices import PriceFile
from costsvc.ingest.profiles import ProfileFile
from tests.fuzz.odd import changed

_KINDS: Final[dict[str, type[BaseModel]]] = {
    "models": ModelFile,
    "gpus": GpuFile,
    "prices": PriceFile,
    "api_prices": ApiPriceFile,
    "profiles": ProfileFile,
    "calibration": JudgementFile,
}
_OF_EACH: Final = 12


def inputs() -> st.SearchStrategy[tuple[str, bytes]]:
    """A kind of file, and the text of one like it."""
    return st.one_of([st.tuples(st.just(kind), changed(_texts(kind))) for kind in _KINDS])


def read(given: tuple[str, bytes]) -> None:
    """Read a file by the schema of its kind, and make its records."""
    kind, body = given
    with tempfile.NamedTemporaryFile(dir=_memory(), suffix=".yaml") as file:
        file.write(body)
        file.flush()
        whole: Any = validated(read_document(Path(file.name), f"{kind}/example.yaml"), _KINDS[kind])
    if kind in ("models", "gpus", "profiles"):
        whole.record()


@cache
def _texts(kind: str) -> tuple[bytes, ...]:
    paths = sorted((catalog_root(None) / kind).glob("*.yaml"), key=lambda path: path.stat().st_size)
    return tuple(path.read_bytes() for path in paths[:_OF_EACH])


def _memory() -> str | None:
    held = Path("/dev/shm")  # noqa: S108 - a file of a test's own, gone with it
    return str(held) if held.is_dir() else None
