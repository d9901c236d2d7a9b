"""Each fact of an entry has exactly one source."""

from collections.abc import Callable
from pathlib import Path

import pytest

from costsvc.ingest.files import read_catalog

Refusal = Callable[[str, str, str], str]
MODEL = "models/tiny.yaml"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "[attention, ffn, published_parameters]",
            "[attention, ffn]",
            "without a source: published_parameters",
        ),
        ("[attention, ffn, published", "[layers, attention, ffn, published", "sourced twice: layers"),
        ("[attention, ffn, published", "[licence, attention, ffn, published", "sourced but absent: licence"),
        ("vocab_size: 100", "vocab_size: 100\nreleased: 2026-01-01", "without a source: released"),
        ("    kind: vendor\n    quoted", "    kind: gossip\n    quoted", "field 'sources.1.kind'"),
        ("name: Tiny\n", "name: ''\n", "field 'name'"),
        ("title: Tiny paper", "title: '  '", "field 'sources.1.title'"),
        ("aliases: [tiny-instruct]", "aliases: [tiny-instruct]\nnotes: 7", "field 'notes'"),
    ],
)
def test_a_file_whose_facts_are_not_covered_once_is_refused(
    refusal: Refusal, old: str, new: str, said: str
) -> None:
    assert said in refusal(MODEL, old, new)


def test_a_conflict_is_about_a_stated_field(refusal: Refusal) -> None:
    conflict = "conflicts:\n  - {field: licence, other_value: MIT, said_by: somebody, reason: because}\n"
    said = refusal(MODEL, "sources:\n", conflict + "sources:\n")
    assert "Fields in conflict but absent: licence" in said


def test_stored_facts_name_their_source_in_the_order_of_the_file(root: Path) -> None:
    facts = read_catalog(root).models[0].fact_sources
    assert {fact.field: fact.source_id for fact in facts} == {
        "hf_id": "models/tiny/1",
        "released_weights": "models/tiny/1",
        "max_context_tokens": "models/tiny/1",
        "hidden_size": "models/tiny/1",
        "vocab_size": "models/tiny/1",
        "tied_embeddings": "models/tiny/1",
        "layers": "models/tiny/1",
        "attention": "models/tiny/2",
        "ffn": "models/tiny/2",
        "published_parameters": "models/tiny/2",
    }


def test_what_a_source_prints_is_kept(root: Path) -> None:
    sources = {source.id: source for source in read_catalog(root).sources}
    assert sources["models/tiny/2"].locator == "prints: 87 K parameters"
    assert sources["models/tiny/1"].locator is None
