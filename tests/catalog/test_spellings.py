"""Spellings in the measured data: all that name something the catalog holds are understood."""

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from costsvc.db.entries import CatalogContent
from costsvc.db.snapshot import Catalog
from costsvc.errors import Ambiguous, NotInCatalog

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"

SURVEYED = pytest.mark.skipif(
    not DATA.is_dir(), reason="the survey is not beside the repository (../shared/data)"
)
OWN = Path(__file__).resolve().parents[2] / "catalog" / "measured"

# Models that the catalog does not hold.
MODELS_NOT_HELD = {
    "BAAI/Aquila-7B",
    "Deci/DeciLM-7B",
    "internlm/internlm-20b",
    "nvidia/Llama-3_3-Nemotron-Super-49B-v1_5-FP8",
    "mistralai/Mistral-Small-4-119B-2603-NVFP4",
    "meta-models/Muse-Glimmer-30B",
    "nvidia/NVIDIA-Nemotron-3-Nano-4B-BF16",
    "nvidia/NVIDIA-Nemotron-3-Nano-4B-FP8",
    "nvidia/Nemotron-3-Nano-Omni-30B-A3B-Reasoning-BF16",
    "nvidia/Nemotron-3-Nano-Omni-30B-A3B-Reasoning-NVFP4",
    "nvidia/AceMath-7B-Instruct",
    "neuralmagic/Llama-3.2-11B-Vision-Instruct-FP8-dynamic",
    "stepfun-ai/Step-3.5-Flash",
    "Chinese-Alpaca-2 7B",
    "Qwen3.8-Flash-Next",
    "Qwen3-Reranker-0.6B",
    "OpenLLaMA-3B",
    "Laguna 48-layer (12 full + 36 SWA)",
    "cosmos-reason2-2b",
    "Qwen2.5-VL-7B-AWQ",
    "XiaomiMiMo/MiMo-VL-7B-SFT",
    "moonshotai/Kimi-VL-A3B-Instruct",
}
# What names no model, or several.
NOT_ONE_MODEL = {
    "(demo model, not in excerpt)",
    "Intel Arc B70 case",
    "Qwen2.5-32B class (Qwen2ForCausalLM, 15.54 GB/GPU)",
    "gemma-3n/4 E-series",
    "phi-4/phi-3-medium 4bit",
}
# Cards that the catalog does not hold.
CARDS_NOT_HELD = {
    "jetson-agx-orin",
    "ascend-910b",
    "intel-core-ultra-x7-368h-npu",
    "8x RTX PRO 5000 72GB",
    "M1 Ultra",
    "Arc Pro B70",
    "Apple M5",
    "3x MI50",
    "4x 910B",
    "CPU",
}
# What says how many cards, or how large, rather than which card alone.
NOT_A_CARD_ALONE = {
    "h100-sxm (assumed)",
    "2x RTX 4090",
    "4x H100",
    "8 GPU",
    "2x A100 (80GB inferred)",
    "1 GPU (TP1)",
    "2x RTX 3090",
    "2x GB10",
    "8x B200 dp-attn",
    "4 GPU",
    "40GB class",
    "CUDA",
    "16GB class (14.56 GiB)",
    "80GB class",
    "48GB class",
    "24GB class (23,028 MiB)",
    "?",
    "8GB consumer",
    "46GB card",
    "shared GPU",
    "RTX 3090 + offload",
    "2x H100-80",
    "1x H100",
    "2x H100",
}
# What names no quantisation that the catalog holds.
NOT_ONE_PLAN = {
    "?",
    "q4",
    "nf4",
    "native",
    "mxfp4(marlin)",
    "fp8 runtime",
}


def surveyed(*columns: str) -> set[str]:
    return spellings(
        [*sorted((DATA / "measured").glob("*.csv")), DATA / "reports" / "kv_capacity.csv"], columns
    )


def spellings(files: Iterable[Path], columns: Sequence[str]) -> set[str]:
    found = set()
    for path in files:
        with path.open(encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines):
                found |= {text for column in columns if (text := row.get(column))}
    return found


def not_understood(find: Callable[[str], object], words: set[str]) -> set[str]:
    missing = set()
    for word in words:
        try:
            find(word)
        except NotInCatalog:
            missing.add(word)
    return missing


@pytest.mark.parametrize(
    ("find", "columns", "not_held", "least"),
    [
        ("model", ("model", "model_path"), MODELS_NOT_HELD | NOT_ONE_MODEL, 147),
        ("gpu", ("gpu", "system"), CARDS_NOT_HELD | NOT_A_CARD_ALONE, 47),
        ("weight_plan", ("weight_dtype", "precision"), NOT_ONE_PLAN, 11),
    ],
)
def test_what_was_measured_beside_the_catalog_is_understood(
    catalog: Catalog, find: str, columns: tuple[str, ...], not_held: set[str], least: int
) -> None:
    words = spellings(sorted(OWN.glob("*.csv")), columns)
    missing = not_understood(getattr(catalog, find), words)
    assert missing <= not_held
    assert len(words - missing) >= least


@SURVEYED
def test_every_model_that_the_catalog_holds_is_understood(catalog: Catalog) -> None:
    words = surveyed("model", "model_path")
    assert not_understood(catalog.model, words) == MODELS_NOT_HELD | NOT_ONE_MODEL
    assert len(words - MODELS_NOT_HELD - NOT_ONE_MODEL) >= 177


@SURVEYED
def test_every_card_that_the_catalog_holds_is_understood(catalog: Catalog) -> None:
    words = surveyed("gpu", "system")
    assert not_understood(catalog.gpu, words) == CARDS_NOT_HELD | NOT_A_CARD_ALONE
    assert len(words - CARDS_NOT_HELD - NOT_A_CARD_ALONE) >= 50


def test_the_page_lists_what_was_measured_and_is_not_held() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "extending.md").read_text(encoding="utf-8")
    assert [name for name in sorted(MODELS_NOT_HELD | CARDS_NOT_HELD) if name not in page] == []


@SURVEYED
def test_every_quantisation_is_understood(catalog: Catalog) -> None:
    assert not_understood(catalog.weight_plan, surveyed("weight_dtype", "precision")) == NOT_ONE_PLAN


@SURVEYED
def test_the_engines_of_most_rows_are_understood(catalog: Catalog) -> None:
    understood = {"vllm", "vLLM", "sglang", "SGLang", "trtllm", "TensorRT-LLM"}
    assert understood <= surveyed("engine", "backend")
    assert not_understood(catalog.stack, understood) == set()


def rows_of(name: str) -> list[dict[str, str]]:
    raw = (DATA / name).read_bytes()
    text = (gzip.decompress(raw) if name.endswith(".gz") else raw).decode()
    return list(csv.DictReader(io.StringIO(text)))


def survey(name: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = json.loads((DATA / "catalog" / name).read_text(encoding="utf-8"))
    return entries


def meant_by(find: Callable[[str], Any], word: str) -> set[str]:
    """Ids of what a spelling means: one, or those that its error names as candidates."""
    try:
        return {find(word).id}
    except Ambiguous as several:
        return set(several.candidates)


@SURVEYED
def test_every_name_in_the_survey_of_models_and_cards_means_its_entry(catalog: Catalog) -> None:
    for entry in survey("models.json"):
        for word in filter(None, (entry["id"], entry["hf_id"])):
            assert meant_by(catalog.model, word) == {entry["id"]}, word
    for entry in survey("gpus.json"):
        assert meant_by(catalog.gpu, entry["id"]) == meant_by(catalog.gpu, entry["name"]) == {entry["id"]}
        for word in entry["aliases"] or ():
            assert entry["id"] in meant_by(catalog.gpu, word), word


# Where a seller's words name one card and the survey another, or leave open which: the words are followed.
SOLD_AS_ANOTHER_CARD = {
    "A100",
    "A100 (40 GB)",
    "A100 (80 GB)",
    "A100 40GB",
    "A100 80GB",
    "H100 80GB",
    "NVIDIA A100 40GB",
    "NVIDIA A100 80GB",
    "NVIDIA A100-SXM4-40GB",
    "NVIDIA A100-SXM4-80GB",
    "NVIDIA H100 NVL",
    "NVIDIA H100 PCIe",
    "NVIDIA H200 NVL",
}
# Not what is sold, but how it was counted.
NO_NAME_OF_A_CARD = {"(aggregated)", "capex per GPU"}


@SURVEYED
def test_every_card_and_instance_in_the_price_lists_is_understood(catalog: Catalog) -> None:
    words: dict[str, set[str]] = {}
    for row in rows_of("catalog/gpu_prices.csv"):
        for column in ("gpu_name_in_source", "instance_type"):
            if row["gpu_id"] and row[column] and row[column] not in NO_NAME_OF_A_CARD:
                words.setdefault(row[column], set()).add(row["gpu_id"])
    assert len(words) >= 650
    means = {word: meant_by(catalog.gpu, word) for word in words}
    assert {word for word, ids in words.items() if not ids <= means[word]} == SOLD_AS_ANOTHER_CARD


@SURVEYED
def test_every_model_in_the_price_lists_is_understood_as_its_seller_calls_it(
    catalog: Catalog, content: CatalogContent
) -> None:
    sold = {row["provider_model_id"] for row in rows_of("catalog/api_prices.csv") if row["model_id"]}
    assert len(sold) >= 1300
    ours = {price.provider_model_id: price.model_id for price in content.api_prices}
    for word in sold:
        (model_id,) = meant_by(catalog.model, word)
        # A shorter name of ours outranks what a seller means by it.
        assert model_id == ours[word] or catalog.models_meant(word) == {model_id}, word


@SURVEYED
def test_the_cards_of_the_kernel_tables_and_of_the_reports_are_understood(catalog: Catalog) -> None:
    for path in sorted((DATA / "measured").glob("*.csv.gz")):
        for card in {row["gpu"] for row in rows_of(f"measured/{path.name}")}:
            assert meant_by(catalog.gpu, card)
    cases = json.loads((DATA / "reports" / "cases.json").read_text(encoding="utf-8"))
    given = [case["input"] for case in cases if isinstance(case["input"], dict)]
    for case in given:
        if isinstance(gpu := case.get("gpu"), str):
            assert meant_by(catalog.gpu, gpu)
        if isinstance(model := case.get("model"), str) and model != "gpt-oss-20b all-layer rate":
            assert meant_by(catalog.model, model)
