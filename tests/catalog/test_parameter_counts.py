"""Computed parameter counts against published ones, and that every number has a source and a day."""

import re
from collections.abc import Iterable, Iterator
from datetime import date
from typing import Any

import pytest
import yaml

from costsvc.db.entries import CatalogContent
from costsvc.ingest.entry import Entry, validated
from costsvc.ingest.files import catalog_root
from costsvc.ingest.gpus import GpuFile
from costsvc.ingest.lines import read_document
from costsvc.ingest.models import ModelFile
from costsvc.ingest.profiles import ProfileFile

ROOT = catalog_root(None)
CLOSE_RATIO = 5e-3
# Rounded by their makers, or with parts that have no formula here: each file gives the reason.
NOT_CLOSE = {
    "gemma-4-e2b",
    "gemma-4-e4b",
    "grok-1",
    "minicpm-2b",
    "ministral-3-3b",
    "opt-125m",
    "opt-6.7b",
    "step-3.7-flash",
}


def model_files() -> list[ModelFile]:
    paths = sorted((ROOT / "models").glob("*.yaml"))
    return [validated(read_document(path, path.name), ModelFile) for path in paths]


@pytest.fixture(scope="module")
def differences() -> dict[str, float]:
    """Of every model the computed count over the published one, less one. [1]"""
    found = {}
    for file in model_files():
        assert file.published_parameters is not None, file.id
        found[file.id] = file.file_parameters() / file.published_parameters - 1
    return found


def test_counts_are_within_half_a_per_cent_of_the_published_ones(differences: dict[str, float]) -> None:
    close = {id for id, difference in differences.items() if abs(difference) <= CLOSE_RATIO}
    assert differences.keys() - close == NOT_CLOSE
    assert len(close) >= 235


def test_most_counts_are_those_of_the_released_files_to_a_ten_thousandth(
    differences: dict[str, float],
) -> None:
    of_files = {
        file.id
        for file in model_files()
        for source in file.sources
        if "published_parameters" in source.covers and "safetensors" in source.title
    }
    alike = {id for id in of_files if abs(differences[id]) <= 1e-4}
    assert len(alike) >= 193


def test_a_model_whose_count_is_not_close_says_why(content: CatalogContent) -> None:
    for entry in content.models:
        if entry.id in NOT_CLOSE:
            assert re.search("maker|count", f"{entry.parameter_difference_reason} {entry.notes}"), entry.id


def numbers(node: Any) -> Iterator[float]:
    if isinstance(node, dict):
        for part in node.values():
            yield from numbers(part)
    elif isinstance(node, list):
        for part in node:
            yield from numbers(part)
    elif isinstance(node, int | float) and not isinstance(node, bool):
        yield node


@pytest.mark.parametrize(
    ("folder", "kind", "at_least"),
    [("models", ModelFile, 2700), ("gpus", GpuFile, 940), ("profiles", ProfileFile, 40)],
)
def test_every_number_of_an_entry_has_a_source_and_a_day(
    folder: str, kind: type[Entry], at_least: int
) -> None:
    counted = 0
    for path in sorted((ROOT / folder).glob("*.yaml")):
        file = validated(read_document(path, path.name), kind)
        values = yaml.load(path.read_text("utf-8"), yaml.CSafeLoader)
        # A profile's facts stand one level deeper.
        values |= values.pop("traffic", {})
        sourced = {field: source for source in file.sources for field in source.covers}
        for field, value in values.items():
            if found := list(numbers(value)) if field not in ("sources", "conflicts") else []:
                assert isinstance(sourced[field].accessed, date), f"{path.name}: {field}"
                counted += len(found)
    assert counted >= at_least


def test_every_price_rate_and_judgement_has_a_source_and_a_day(content: CatalogContent) -> None:
    known = {source.id: source for source in content.sources}
    dated: Iterable[tuple[str, date | None]] = [
        *((price.source_id, price.first_day) for offer in content.offers for price in offer.prices),
        *((price.source_id, price.observed) for price in content.api_prices),
        *((rate.source_id, rate.first_day) for rate in content.fx_rates),
        *((one.source_id, one.dated) for one in content.judgements),
    ]
    assert len(list(dated)) >= 4000
    for source_id, day in dated:
        assert known[source_id].accessed is not None
        assert isinstance(day, date), source_id
