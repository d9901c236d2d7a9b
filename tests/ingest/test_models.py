"""Model files: shapes for the engine, held against the published count."""

from collections.abc import Callable
from pathlib import Path

import pytest

from costsvc.engine.attention import FullAttention
from costsvc.engine.parameters import parameter_count
from costsvc.engine.specs import DenseFfn
from costsvc.ingest.files import read_catalog

Refusal = Callable[[str, str, str], str]
MODEL = "models/tiny.yaml"


def test_shapes_become_groups_and_a_pattern(root: Path) -> None:
    spec = read_catalog(root).models[0].spec
    assert spec.pattern == (0, 0)
    assert spec.groups[0].attention == FullAttention(query_heads=4, kv_heads=2, head_dim=16)
    assert spec.groups[0].ffn == DenseFfn(intermediate_size=128)
    assert spec.groups[0].norm_vectors == 2
    assert parameter_count(spec) == 86_848


def test_a_count_that_is_off_needs_a_reason(refusal: Refusal) -> None:
    said = refusal(MODEL, "published_parameters: 86720", "published_parameters: 95000")
    assert "Computed 86,848 parameters, published 95,000: -8.6%" in said


def test_a_count_that_is_off_for_a_reason_is_read(root: Path) -> None:
    path = root / MODEL
    text = path.read_text("utf-8").replace("ters: 86720", "ters: 95000\nparameter_difference_reason: a tower")
    path.write_text(text, "utf-8")
    assert read_catalog(root).models[0].parameter_difference_reason == "a tower"


@pytest.mark.parametrize(("part", "more"), [("mtp", 20_000), ("tied-head-copy", 6_400)])
def test_what_the_file_holds_beside_the_model_counts_towards_the_published(
    root: Path, part: str, more: int
) -> None:
    path = root / MODEL
    text = path.read_text("utf-8").replace(
        "published_parameters: 86720",
        f"mtp_parameters: 20000\npublished_parameters: {86_848 + more}\npublished_counts_also: [{part}]",
    )
    text = text.replace("[attention, ffn,", "[mtp_parameters, published_counts_also, attention, ffn,")
    path.write_text(text, "utf-8")
    entry = read_catalog(root).models[0]
    assert entry.published_parameters == 86_848 + more
    assert parameter_count(entry.spec) == 86_848


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("layers: 2*full+mlp", "layers: 2*full", "The layers never use: mlp"),
        ("layers: 2*full+mlp", "layers: 2*half+mlp", "name 'half'"),
        ("head_dim: 16", "head_dim: -16", "full.head_dim is -16; a shape is not negative"),
        ("hidden_size: 64", "hidden_size: 0", "field 'hidden_size'"),
        ("hidden_size: 64", "hidden_size: true", "field 'hidden_size'"),
        ("tied_embeddings: false", "tied_embeddings: 0", "field 'tied_embeddings'"),
        ("layers: 2*full+mlp", "layers: 2*full+mlp\nnorm_vectors: 99", "field 'norm_vectors'"),
    ],
)
def test_shapes_that_no_model_has_are_refused(refusal: Refusal, old: str, new: str, said: str) -> None:
    assert said in refusal(MODEL, old, new)


@pytest.mark.parametrize(
    "scaling", ["original_tokens: 4096", "original_tokens: 0", "original_tokens: 512, x: 1"]
)
def test_rope_scaling_begins_inside_the_context(refusal: Refusal, scaling: str) -> None:
    line = "max_context_tokens: 4096"
    said = refusal(MODEL, line, f"{line}\nrope_scaling: {{method: yarn, factor_ratio: 4.0, {scaling}}}")
    assert "rope_scaling" in said
