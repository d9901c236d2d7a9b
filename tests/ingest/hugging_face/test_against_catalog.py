"""An import says the same of a model as its reviewed file in the catalog: kinds, order and sizes of all layers."""

from functools import cache

import pytest

from costsvc.engine.specs import ModelSpec
from costsvc.ingest.entry import validated
from costsvc.ingest.files import catalog_root
from costsvc.ingest.lines import read_document
from costsvc.ingest.models import ModelFile
from tests.ingest.hugging_face.published import imported, published

SAME = {
    "CohereLabs/c4ai-command-r-v01": "command-r",
    "LGAI-EXAONE/EXAONE-3.5-7.8B-Instruct": "exaone-3.5-7.8b",
    "HuggingFaceTB/SmolLM3-3B": "smollm3-3b",
    "MiniMaxAI/MiniMax-M2.5": "minimax-m2.5",
    "MiniMaxAI/MiniMax-M3": "minimax-m3",
    "Qwen/Qwen1.5-MoE-A2.7B": "qwen1.5-moe-a2.7b",
    "Qwen/Qwen3-0.6B": "qwen3-0.6b",
    "Qwen/Qwen3-235B-A22B": "qwen3-235b-a22b",
    "Qwen/Qwen3-VL-30B-A3B-Instruct": "qwen3-vl-30b-a3b",
    "Qwen/Qwen3-Coder-Next": "qwen3-coder-next",
    "Qwen/Qwen3.5-27B": "qwen3.5-27b",
    "Qwen/Qwen3.5-397B-A17B": "qwen3.5-397b-a17b",
    "XiaomiMiMo/MiMo-7B-Base": "mimo-7b",
    "XiaomiMiMo/MiMo-V2-Flash": "mimo-v2-flash",
    "ai21labs/Jamba-v0.1": "jamba-v0.1",
    "deepseek-ai/DeepSeek-R1": "deepseek-r1",
    "deepseek-ai/DeepSeek-V3.2": "deepseek-v3.2",
    "deepseek-ai/DeepSeek-V4-Flash": "deepseek-v4-flash",
    "deepseek-ai/DeepSeek-V4-Pro": "deepseek-v4-pro",
    "google/gemma-2-2b": "gemma-2-2b",
    "google/gemma-7b": "gemma-7b",
    "google/gemma-4-26B-A4B": "gemma-4-26b-a4b",
    "internlm/internlm3-8b-instruct": "internlm3-8b",
    "meta-llama/Llama-4-Maverick-17B-128E-Instruct": "llama-4-maverick",
    "meta-llama/Llama-4-Scout-17B-16E-Instruct": "llama-4-scout",
    "meta-llama/Meta-Llama-3.1-405B": "llama-3.1-405b",
    "mistralai/Mistral-7B-v0.1": "mistral-7b-v0.1",
    "moonshotai/Kimi-K2.5": "kimi-k2.5",
    "moonshotai/Kimi-K3": "kimi-k3",
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": "nemotron-3-nano-30b-a3b",
    "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8": "nemotron-3-super-120b-a12b",
    "nvidia/Nemotron-H-56B-Base-8K": "nemotron-h-56b",
    "openai/gpt-oss-20b": "gpt-oss-20b",
    "openai-community/gpt2": "gpt2",
    "stabilityai/stablelm-3b-4e1t": "stablelm-3b-4e1t",
    "tencent/Hy3": "hy3-295b",
    "tiiuae/falcon-7b": "falcon-7b",
    "zai-org/GLM-5.2": "glm-5.2",
}


@cache
def of_file(id: str) -> ModelFile:
    name = f"models/{id}.yaml"
    return validated(read_document(catalog_root(None) / name, name), ModelFile)


def layers(spec: ModelSpec) -> list[object]:
    return [spec.groups[index] for index in spec.pattern]


@pytest.mark.parametrize(("model", "id"), SAME.items(), ids=SAME)
def test_every_layer_is_the_one_of_the_reviewed_file(model: str, id: str) -> None:
    made, reviewed = imported(published(model)).file.spec(), of_file(id).spec()
    assert layers(made) == layers(reviewed)
    for size in ("hidden_size", "vocab_size", "tied_embeddings", "position_values"):
        assert getattr(made, size) == getattr(reviewed, size)


@pytest.mark.parametrize(
    "model",
    [
        "deepseek-ai/DeepSeek-R1",
        "zai-org/GLM-5",
        "Qwen/Qwen3.5-397B-A17B",
        "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8",
    ],
)
def test_prediction_layers_count_as_in_the_reviewed_file(model: str) -> None:
    id = {"zai-org/GLM-5": "glm-5"}.get(model) or SAME[model]
    assert imported(published(model)).file.mtp_parameters == of_file(id).mtp_parameters
