"""Spellings in the measured data: all that name something the catalog holds are understood."""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from costsvc.db.snapshot import Catalog
from costsvc.errors import NotInCatalog

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="the measured data is not beside the repository (../shared/data)"
)

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
    "rtx-3070",
    "rtx-3080",
    "rtx-3080-ti",
    "rtx-4070-ti",
    "rtx-4080",
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


def spellings(*columns: str) -> set[str]:
    files = [*sorted((DATA / "measured").glob("*.csv")), DATA / "reports" / "kv_capacity.csv"]
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


def test_every_model_that_the_catalog_holds_is_understood(catalog: Catalog) -> None:
    words = spellings("model", "model_path")
    assert not_understood(catalog.model, words) == MODELS_NOT_HELD | NOT_ONE_MODEL
    assert len(words - MODELS_NOT_HELD - NOT_ONE_MODEL) >= 177


def test_every_card_that_the_catalog_holds_is_understood(catalog: Catalog) -> None:
    words = spellings("gpu", "system")
    assert not_understood(catalog.gpu, words) == CARDS_NOT_HELD | NOT_A_CARD_ALONE
    assert len(words - CARDS_NOT_HELD - NOT_A_CARD_ALONE) >= 50


def test_every_quantisation_is_understood(catalog: Catalog) -> None:
    assert not_understood(catalog.weight_plan, spellings("weight_dtype", "precision")) == NOT_ONE_PLAN


def test_the_engines_of_most_rows_are_understood(catalog: Catalog) -> None:
    understood = {"vllm", "vLLM", "sglang", "SGLang", "trtllm", "TensorRT-LLM"}
    assert understood <= spellings("engine", "backend")
    assert not_understood(catalog.stack, understood) == set()
