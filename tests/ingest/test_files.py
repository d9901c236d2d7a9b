"""A catalog is read whole or refused by file, line and field."""

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from costsvc.errors import InvalidCatalogFile
from costsvc.ingest.files import catalog_root, read_catalog
from costsvc.ingest.fingerprint import files_fingerprint

Refusal = Callable[[str, str, str], str]


def test_a_catalog_without_a_mistake_is_read(root: Path) -> None:
    content = read_catalog(root)
    assert [model.id for model in content.models] == ["tiny"]
    assert [gpu.id for gpu in content.gpus] == ["h100"]
    assert "gemm_mfu_share" in {judgement.name for judgement in content.judgements}
    assert content.stacks[0].without_kernel == (("fp8", "hopper"),)
    assert content.dtypes[1].spec.arithmetic == ("fp8", "bf16", "fp16")
    assert {"sheet", "models/tiny/2", "gpus/h100/1", "calibration/examples"} <= {
        s.id for s in content.sources
    }


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        (
            "models/tiny.yaml",
            "hidden_size: 64",
            "hidden_size: sixty",
            "models/tiny.yaml:8: field 'hidden_size'",
        ),
        ("models/tiny.yaml", "vocab_size: 100", "vocab_size: 100\ncolour: red", "10: field 'colour'"),
        ("models/tiny.yaml", "vocab_size: 100", "vocab_size: 100\nvocab_size: 101", "10: field 'vocab_size'"),
        ("models/tiny.yaml", "head_dim: 16", "head_dim: wide", "models/tiny.yaml:13: field 'attention.full"),
        (
            "models/tiny.yaml",
            "head_dim: 16",
            "head_dim: 16, wings: 2",
            "models/tiny.yaml:13: field 'attention.f",
        ),
        ("models/tiny.yaml", "kind: full", "kind: psychic", "models/tiny.yaml:13: field 'attention.full"),
        (
            "models/tiny.yaml",
            "released_weights: bf16",
            "released_weights: int2",
            "tiny.yaml:6: field 'released_w",
        ),
        ("models/tiny.yaml", "86720", "99000", "models/tiny.yaml:16: field 'published_parameters': Computed"),
        (
            "models/tiny.yaml",
            "vocab_size: 100",
            "vocab_size: 100\nlicence: MIT",
            "tiny.yaml:10: field 'licence'",
        ),
        (
            "models/tiny.yaml",
            "2*full+mlp",
            "2*half+mlp",
            "models/tiny.yaml:11: field 'layers': The layers name",
        ),
        ("gpus/h100.yaml", "81559", "99999", "gpus/h100.yaml:7: field 'driver_memory_mib': Software"),
        (
            "prices/aws.yaml",
            "first_day: 2026-06-15",
            "first_day: 2025-06-15",
            "aws.yaml:10: field 'offers.0.prices'",
        ),
        ("models/tiny.yaml", "id: tiny\n", "id: small\n", "has to be called small.yaml"),
        ("gpus/h100.yaml", "memory_gib: 80", "memory_gib: -80", "gpus/h100.yaml:6: field 'memory_gib'"),
        ("gpus/h100.yaml", "memory_gib: 80", "memory_gib: .inf", "gpus/h100.yaml:6: field 'memory_gib'"),
        ("gpus/h100.yaml", "power_w: 700", 'power_w: "700"', "gpus/h100.yaml:17: field 'power_w'"),
        (
            "prices/aws.yaml",
            "gpu: h100",
            "gpu: h900",
            "prices/aws.yaml:4: field 'offers.0.gpu': there is no 'h900'",
        ),
        ("prices/aws.yaml", '"55.04", source: list', '"55.04", source: rumour', "prices/aws.yaml:12:"),
        ("prices/aws.yaml", '"55.04"', "55.04", "prices/aws.yaml:12:"),
        ("prices/aws.yaml", '"55.04"', '"0"', "prices/aws.yaml:12:"),
        ("prices/aws.yaml", '"55.04"', '"NaN"', "prices/aws.yaml:12:"),
        ("prices/aws.yaml", "provider: aws", "provider: gcp", "prices/aws.yaml:1: field 'provider'"),
        (
            "api_prices/aws.yaml",
            "model: tiny",
            "model: giant",
            "aws.yaml:7: field 'observations.0.models.0.model'",
        ),
        ("api_prices/aws.yaml", "source: list", "source: rumour", "field 'observations.0.source'"),
        ("dtypes.yaml", "id: fp8", "id: bf16", "dtypes.yaml:3: field 'dtypes.1.id': 'bf16' stands twice"),
        ("dtypes.yaml", "[fp8, bf16, fp16]", "[bf16, fp8]", "The last rate of arithmetic is bf16 or fp16"),
        (
            "weight_plans.yaml",
            "experts: bf16",
            "experts: fp2",
            "weight_plans.yaml:2: field 'weight_plans.0.exp",
        ),
        (
            "stacks.yaml",
            "generation: hopper",
            "generation: kepler",
            "stacks.yaml:8: field 'stacks.0.without_k",
        ),
        (
            "stacks.yaml",
            "memory_rule: of-total",
            "memory_rule: greedy",
            "stacks.yaml:4: field 'stacks.0.memory_r",
        ),
        ("owned.yaml", "gpu: h100", "gpu: h900", "owned.yaml:7: field 'purchases.0.gpu'"),
        ("owned.yaml", "pue: pue,", "pue: none,", "priced_with names no constant of facility: none"),
        (
            "calibration/examples.yaml",
            "stack: vllm",
            "stack: vlm",
            "examples.yaml:8: field 'judgements.0.scope",
        ),
        ("calibration/examples.yaml", "    points: 12\n", "", "A measured value states its number of points"),
        ("calibration/owned.yaml", "name: owned_server_cost_ratio", "name: other", "owned_server_cost_ratio"),
    ],
)
def test_a_mistake_is_named_by_file_line_and_field(
    refusal: Refusal, name: str, old: str, new: str, said: str
) -> None:
    message = refusal(name, old, new)
    assert message.startswith(("owned.yaml" if "owned" in name else name) + ":")
    assert said in message


def test_a_missing_file_is_named(root: Path) -> None:
    (root / "stacks.yaml").unlink()
    with pytest.raises(InvalidCatalogFile, match=r"stacks\.yaml: is missing"):
        read_catalog(root)


def test_two_files_of_one_provider_are_refused(root: Path) -> None:
    (root / "prices" / "bws.yaml").write_text((root / "prices" / "aws.yaml").read_text("utf-8"), "utf-8")
    with pytest.raises(InvalidCatalogFile, match=r"'aws' has its prices in prices/aws\.yaml"):
        read_catalog(root)


def test_the_same_judgement_twice_for_one_scope_is_refused(root: Path) -> None:
    text = (root / "calibration" / "examples.yaml").read_text("utf-8")
    (root / "calibration" / "more.yaml").write_text(text, "utf-8")
    with pytest.raises(
        InvalidCatalogFile, match=r"already has a value for this scope in calibration/examples"
    ):
        read_catalog(root)


def test_an_alias_of_another_entry_is_refused(root: Path) -> None:
    text = (root / "models" / "tiny.yaml").read_text("utf-8")
    other = text.replace("id: tiny", "id: other").replace("name: Tiny", "name: Other")
    other = other.replace("acme/Tiny-1B", "acme/Other").replace("tiny-instruct", "Someone/TINY 1b")
    (root / "models" / "other.yaml").write_text(other, "utf-8")
    with pytest.raises(InvalidCatalogFile, match=r"tiny\.yaml:3?.*already means other"):
        read_catalog(root)


def test_a_spelling_may_mean_two_entries_only_where_both_say_so(root: Path) -> None:
    path = root / "gpus" / "h100.yaml"
    text = path.read_text("utf-8").replace("aliases: [H100 SXM5]", "ambiguous_aliases: [H]")
    path.write_text(text, "utf-8")
    with pytest.raises(InvalidCatalogFile, match=r"h100\.yaml:5: .*'H' means no other entry"):
        read_catalog(root)
    other = text.replace("id: h100", "id: h200").replace("name: H100 SXM", "name: H200")
    (root / "gpus" / "h200.yaml").write_text(other, "utf-8")
    assert [gpu.aliases for gpu in read_catalog(root).gpus] == [("H",), ("H",)]
    (root / "gpus" / "h200.yaml").write_text(other.replace("ambiguous_aliases", "aliases"), "utf-8")
    with pytest.raises(InvalidCatalogFile, match="'H'"):
        read_catalog(root)


def test_what_an_owned_card_costs_follows_from_its_parts(root: Path) -> None:
    owned = next(offer for offer in read_catalog(root).offers if offer.market == "owned")
    capital = Decimal(30_000) * Decimal("1.46") / (5 * 8760)
    hosting = Decimal("0.7") * 73 / 730
    power = Decimal("0.7") * Decimal("0.8") * Decimal("1.25") * Decimal("0.10")
    assert (capital, hosting, power) == (Decimal(1), Decimal("0.07"), Decimal("0.07"))
    assert owned.prices[0].usd_per_gpu_hour == Decimal("1.14")
    assert owned.prices[0].first_day == date(2026, 6, 1)
    assert owned.notes is not None
    assert "capital 1.0000" in owned.notes
    assert "month only" in owned.notes


def test_an_owned_card_without_power_has_no_price(root: Path) -> None:
    path = root / "gpus" / "h100.yaml"
    text = path.read_text("utf-8").replace("power_w: 700\n", "").replace(", power_w]", "]")
    path.write_text(text.replace("fields_not_confirmed: {single-source: [power_w]}\n", ""), "utf-8")
    with pytest.raises(InvalidCatalogFile, match=r"owned\.yaml:6: field 'purchases': h100 has no power_w"):
        read_catalog(root)


def test_the_checkout_has_a_catalog_and_an_asked_for_folder_must_be_one(root: Path, tmp_path: Path) -> None:
    assert (catalog_root(None) / "models").is_dir()
    assert catalog_root(root) == root
    with pytest.raises(InvalidCatalogFile, match="holds no catalog"):
        catalog_root(tmp_path / "nowhere")


def test_a_fingerprint_changes_with_a_file_and_only_then(root: Path) -> None:
    before = files_fingerprint(root)
    assert files_fingerprint(root) == before
    stacks = root / "stacks.yaml"
    stacks.write_text(stacks.read_text(encoding="utf-8") + "# a remark\n", encoding="utf-8")
    remarked = files_fingerprint(root)
    assert remarked != before
    stacks.rename(root / "stacks2.yaml")
    assert files_fingerprint(root) not in {before, remarked}
