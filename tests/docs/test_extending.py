"""The additions of docs/extending.md, performed: its own code blocks, in a copy of the catalog."""

import re
import shutil
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from costsvc.api.formats import View
from costsvc.db.snapshot import Catalog
from costsvc.engine.memory import kv_cache_bytes
from costsvc.engine.specs import DenseFfn, LayerGroup, ModelSpec
from costsvc.ingest.files import catalog_root, read_catalog
from costsvc.quoting.posting import PostedOffer, parse_body, with_offer
from costsvc.quoting.quote import make_quote
from costsvc.quoting.request import parse_request
from costsvc.quoting.tables.table import Table, numbers
from tests.docs.pages import blocks, text_of
from tests.docs.refresh import DAY

_FILE = re.compile(r"# (append to )?catalog/(\S+)\n")
PAGE = text_of("docs/extending.md")


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    """The shipped catalog with every file and entry of the page."""
    root = tmp_path_factory.mktemp("extended") / "catalog"
    shutil.copytree(catalog_root(None), root)
    for block in blocks(PAGE):
        if block.language == "yaml":
            _add(root, block.text)
    return Catalog(read_catalog(root), revision=1)


def _add(root: Path, text: str) -> None:
    head = _FILE.match(text)
    assert head is not None, f"A block of YAML says where it goes in its first line: {text[:60]}"
    path, added = root / head[2], text[head.end() :]
    if head[1]:
        path.write_text(path.read_text(encoding="utf-8").rstrip("\n") + "\n" + added, encoding="utf-8")
    else:
        assert not path.exists(), f"{path.name} is there already"
        path.write_text(added, encoding="utf-8")


def _quote(catalog: Catalog, day: date = DAY, **asked: object) -> Mapping[str, Any]:
    return make_quote(catalog, parse_request(asked), day)


def test_an_added_model_is_quoted_with_the_cache_of_its_layers(extended: Catalog) -> None:
    answer = _quote(extended, model="example-org/Example-9B-Instruct", gpu="h100", ctx=32768)
    per_token_bytes = 8 * (128 + 128) * 2
    held = 24 * 4096 + 8 * 32768
    assert answer["memory"]["model_kv_bytes_per_sequence"] == held * per_token_bytes
    assert float(answer["prices"]["output"]["usd_per_mtok"]) > 0


def test_an_added_gpu_is_quoted_at_the_price_of_the_day(extended: Catalog) -> None:
    before, after = (
        _quote(extended, date.fromisoformat(day), model="llama-3-8b", gpu="Example 96", ctx=4096)
        for day in ("2026-10-31", "2026-11-01")
    )
    assert before["cost"]["gpu_price"]["usd_per_gpu_hour"] == "2.50000000"
    assert after["cost"]["gpu_price"]["usd_per_gpu_hour"] == "2.00000000"
    assert after["cost"]["gpu_price"]["votes"][0]["provider"] == "Example Cloud"
    assert after["uncertainty"]["extrapolated"]
    assert any("unverified" in warning for warning in after["warnings"])


def test_an_added_stack_has_its_own_overhead_and_kernels(extended: Catalog) -> None:
    answer = _quote(extended, model="llama-3-8b", gpu="h100", ctx=4096, stack="exeng")
    overheads = [one for one in answer["assumptions"] if one["name"] == "step_overhead_s"]
    assert [one["scope"] for one in overheads] == [{"stack": "example-engine"}]
    assert ("fp8", "ampere") in extended.stack("exeng").without_kernel


def test_an_added_dtype_stores_what_it_says(extended: Catalog) -> None:
    wide, narrow = (
        _quote(extended, model="llama-3-70b", gpu="h100", ctx=4096, tp=4, weights=weights)["memory"]
        for weights in ("bf16", "example_int5")
    )
    tables = 2 * 128256 * 8192 * 2 / 4
    ratio = (narrow["weights_bytes"] - tables) / (wide["weights_bytes"] - tables)
    assert ratio == pytest.approx(0.65625 / 2, rel=1e-3)


def test_a_posted_price_is_accepted_by_the_rules_of_the_files(catalog: Catalog) -> None:
    body = next(block.text for block in blocks(PAGE) if block.language == "json")
    posted = parse_body(PostedOffer, body.encode())
    changed = Catalog(with_offer(catalog, posted), revision=None)
    reference = changed.reference_price("h100-sxm", DAY, provider="Example Cloud")
    assert f"{reference.usd_per_gpu_hour}" == "2.10"


def test_an_attention_variant_is_one_class() -> None:
    block = next(block for block in blocks(PAGE) if "class FirstAndLastAttention" in block.text)
    names: dict[str, Any] = {"__name__": "costsvc.engine.attention.example"}
    exec(compile(block.text, "docs/extending.md", "exec"), names)  # noqa: S102 - the page's own example
    attention = names["FirstAndLastAttention"](
        query_heads=32, kv_heads=8, head_dim=128, first_tokens=64, window_tokens=1024
    )
    model = ModelSpec(
        id="example",
        hidden_size=4096,
        vocab_size=1000,
        tied_embeddings=False,
        max_context_tokens=1_000_000,
        groups=(LayerGroup(attention=attention, ffn=DenseFfn(intermediate_size=1024)),),
        pattern=(0,) * 10,
    )
    assert kv_cache_bytes(model, 1_000_000, 2) == 10 * 8 * 256 * 2 * (64 + 1024)
    assert float(attention.visible_integral(1000.0)) == 1000**2 / 2


def test_an_output_format_is_one_function_and_one_entry() -> None:
    block = next(block for block in blocks(PAGE) if "def to_tsv" in block.text)
    names: dict[str, Any] = {}
    exec(compile(block.text, "docs/extending.md", "exec"), names)  # noqa: S102 - the page's own example
    table = Table(name="quotes", row_name="quote", columns=numbers("ctx_tokens"), rows=[{"ctx_tokens": 8192}])
    rendered = names["TSV"].render(table, View(table=lambda answer: answer), None)
    assert rendered == b"ctx_tokens\n8192"
    assert names["TSV"].has(View(table=lambda answer: answer))
    assert not names["TSV"].has(View())
