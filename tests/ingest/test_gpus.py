"""Accelerator files: as the datasheet prints, then in SI."""

from collections.abc import Callable
from pathlib import Path

import pytest

from costsvc.errors import InvalidCatalogFile
from costsvc.ingest.files import read_catalog

Refusal = Callable[[str, str, str], str]
GPU = "gpus/h100.yaml"


def test_printed_units_become_si_once(root: Path) -> None:
    entry = read_catalog(root).gpus[0]
    spec = entry.spec
    assert spec.memory_bytes == 80 * 2**30
    assert spec.usable_memory_bytes == 81_559 * 2**20
    assert spec.memory_bytes_per_s == 3350e9
    assert spec.dense_flops_per_s == {"bf16": 989.4e12, "fp8": 1978.9e12}
    assert (spec.link_bytes_per_s, spec.link_domain_gpus) == (450e9, 8)
    assert spec.pcie_bytes_per_s == 64e9
    assert spec.power_w == 700
    assert entry.fields_not_confirmed == ("power_w",)


def test_without_a_driver_reading_the_lesser_reading_of_the_label_counts(root: Path) -> None:
    path = root / GPU
    text = (
        path.read_text("utf-8").replace("driver_memory_mib: 81559\n", "").replace("driver_memory_mib, ", "")
    )
    path.write_text(text, "utf-8")
    assert read_catalog(root).gpus[0].spec.usable_memory_bytes == 80e9
    text = text.replace("memory_gib: 80\n", "memory_gib: 80\nusable_memory_gib: 78\n")
    path.write_text(text.replace("[generation,", "[generation, usable_memory_gib,"), "utf-8")
    assert read_catalog(root).gpus[0].spec.usable_memory_bytes == 78 * 2**30


def test_without_a_link_ranks_talk_over_pcie(root: Path) -> None:
    path = root / GPU
    text = path.read_text("utf-8")
    for line in (
        "scale_up_link: NVLink4\n",
        "scale_up_gb_per_s_per_direction: 450\n",
        "scale_up_domain_gpus: 8\n",
    ):
        text = text.replace(line, "")
    text = text.replace("scale_up_link, scale_up_gb_per_s_per_direction, scale_up_domain_gpus,", "")
    path.write_text(text, "utf-8")
    spec = read_catalog(root).gpus[0].spec
    assert (spec.link_bytes_per_s, spec.link_domain_gpus) == (64e9, 1)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("driver_memory_mib: 81559", "driver_memory_mib: 99999", "Software cannot see more memory"),
        ("dense_bf16_tflops: 989.4\n", "", "sourced but absent: dense_bf16_tflops"),
        (
            "single-source: [power_w]",
            "single-source: [colour]",
            "fields that the file does not state: colour",
        ),
        ("{fields: [dense_bf16_tflops]", "{fields: [dense_fp4_tflops]", "does not state: dense_fp4_tflops"),
        ("spec_check: verified", "spec_check: sure", "field 'spec_check'"),
        (
            "dense_bf16_tflops: 989.4",
            "dense_bf16_tflops: 989.4\nsparse_bf16_tflops: 1979",
            "'sparse_bf16_tflops'",
        ),
    ],
)
def test_a_datasheet_that_cannot_be_is_refused(refusal: Refusal, old: str, new: str, said: str) -> None:
    assert said in refusal(GPU, old, new)


def test_a_card_without_a_16_bit_rate_is_refused(root: Path) -> None:
    path = root / GPU
    text = (
        path.read_text("utf-8").replace("dense_bf16_tflops: 989.4\n", "").replace(" dense_bf16_tflops,", "")
    )
    path.write_text(text.partition("confirmations:")[0], "utf-8")
    with pytest.raises(InvalidCatalogFile, match="State dense_bf16_tflops or dense_fp16_tflops"):
        read_catalog(root)


def test_a_link_without_a_name_is_refused(root: Path) -> None:
    path = root / GPU
    text = path.read_text("utf-8").replace("scale_up_link: NVLink4\n", "").replace(" scale_up_link,", "")
    path.write_text(text, "utf-8")
    with pytest.raises(
        InvalidCatalogFile, match="scale_up_link and scale_up_gb_per_s_per_direction together"
    ):
        read_catalog(root)
