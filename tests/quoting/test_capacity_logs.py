"""KV tokens that engines logged, against the budget model: weights, activations and runtime all predicted."""

import csv
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from costsvc.db.snapshot import Catalog
from costsvc.errors import CostsvcError, InvalidRequest
from costsvc.quoting.capacity import capacity_point

LOGS = Path(__file__).parents[2] / "catalog" / "measured" / "kv_capacity.csv"

# Why a row has no answer: a card that its log does not name, or a model, a dtype or a memory nobody can look up.
NOT_NAMED = ("No gpu", "No model", "No weights", "No dtype", "can mean more than one gpu", "host memory")
# The log prints one of eight chips; the model needs them all.
DOES_NOT_FIT = frozenset({"C010"})


def _rows() -> list[Mapping[str, str]]:
    with LOGS.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_engines_log_the_tokens_that_the_budget_model_expects(catalog: Catalog) -> None:
    errors, refused = [], []
    for row in _rows():
        try:
            found = capacity_point(catalog, {**row, "kv_gib_per_gpu": ""})
        except CostsvcError as error:
            if row["id"] not in DOES_NOT_FIT:
                refused.append(error.message)
            continue
        assert float(str(found["kv_tokens"])) > 0
        errors.append(float(str(found["kv_tokens"])) / float(row["kv_tokens"]) - 1.0)
    assert [message for message in refused if not any(why in message for why in NOT_NAMED)] == []
    assert len(errors) >= 35
    assert np.median(np.abs(errors)) <= 0.03
    assert np.percentile(np.abs(errors), 90) <= 0.2


def test_an_engine_without_chunks_profiles_the_longest_prompt_whole(catalog: Catalog) -> None:
    """More context leaves less cache up to 32,768 tokens, where chunked prefill turns on."""
    row = {"model": "llama-3.1-8b", "gpu": "rtx-3090", "engine": "vllm", "version": "~0.6.x"}
    gib = [
        float(str(capacity_point(catalog, {**row, "max_model_len": length})["kv_gib_per_gpu"]))
        for length in ("8192", "20000", "29000", "35000")
    ]
    assert gib[0] > gib[1] > gib[2]
    assert gib[3] == gib[0]
    newer = [
        capacity_point(catalog, {**row, "version": "0.19.0", "max_model_len": length})["kv_gib_per_gpu"]
        for length in ("8192", "29000")
    ]
    assert newer[0] == newer[1]


def test_cards_without_a_switch_keep_smaller_buffers(catalog: Catalog) -> None:
    def given(gpu: str) -> float:
        row = {"model": "llama-3.1-8b", "gpu": gpu, "tp": "1"}
        one = capacity_point(catalog, row)
        two = capacity_point(catalog, {**row, "tp": "2"})
        freed = float(str(one["weights_gib_per_gpu"])) - float(str(two["weights_gib_per_gpu"]))
        return freed - (float(str(two["kv_gib_per_gpu"])) - float(str(one["kv_gib_per_gpu"])))

    assert 0.0 < given("rtx-4090") < given("h100-sxm")


def test_weights_in_host_memory_are_refused_not_ignored(catalog: Catalog) -> None:
    row = {"model": "llama-3.1-8b", "gpu": "RTX 3090 + offload", "engine": "vllm"}
    with pytest.raises(InvalidRequest, match="host memory"):
        capacity_point(catalog, row)
