"""A catalog that is older than some judgements goes on being quoted, as the formulas were when it was made."""

from dataclasses import replace
from math import isfinite
from typing import Any

import pytest

from costsvc.db.judgements import ADDED
from costsvc.db.snapshot import Catalog
from costsvc.errors import InvalidCatalogFile
from costsvc.ingest.files import catalog_root, read_catalog
from costsvc.quoting.quote import make_quote
from costsvc.quoting.request import parse_request
from tests.engine.shapes import TODAY

ASKED = parse_request({"model": "deepseek-v3", "gpu": "h200", "ctx": "8192", "hit_rate": "0.5"})


@pytest.fixture(scope="module")
def older() -> Catalog:
    content = read_catalog(catalog_root(None))
    kept = tuple(one for one in content.judgements if one.name not in ADDED)
    assert {one.name for one in content.judgements} - {one.name for one in kept} == set(ADDED)
    return Catalog(replace(content, judgements=kept), revision=1)


def test_it_is_quoted_and_says_what_it_is_older_than(older: Catalog) -> None:
    answer: Any = make_quote(older, ASKED, TODAY)
    assert isfinite(float(answer["prices"]["input"]["usd_per_mtok"]))
    reasons = {one["name"]: one.get("reason") or "" for one in answer["assumptions"]}
    assert "older than the judgement" in reasons["expert_evenness_ratio"]


def test_what_was_part_of_another_judgement_is_as_that_one_is(older: Catalog) -> None:
    of = {"gpu": "l40s", "generation": "ada", "stack": "vllm", "architecture": "dense", "dtype": "bf16"}
    for name, was in ADDED.items():
        found = older.judgements.find(name, of)
        assert found.name == name
        assert found.value == (older.judgements.find(was, of).value if isinstance(was, str) else was[0])


def test_what_every_catalog_has_is_missed(older: Catalog) -> None:
    with pytest.raises(InvalidCatalogFile, match="no judgement 'warp_share'"):
        older.judgements.find("warp_share", {})
