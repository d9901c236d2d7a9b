"""The shipped catalog as a whole: complete, quick to read, and fit to be shown."""

import json
import re
import time
import unicodedata
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from costsvc.db.entries import CatalogContent
from costsvc.db.snapshot import Catalog
from costsvc.errors import Ambiguous
from costsvc.ingest.files import catalog_root, read_catalog
from costsvc.ingest.schemas import FOLDER, SCHEMAS, schema_text

ROOT = catalog_root(None)
FOLDERS = (".", "models", "gpus", "prices", "api_prices")
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).glob("*.yaml"))
# Hosts that a reader's network may not allow, and places that exist on one machine only.
UNFIT = re.compile(r"pypi\.|/home/|/tmp/|/root/|/work/|localhost", re.IGNORECASE)


def schema_named_in(path: Path) -> str:
    first = path.read_text(encoding="utf-8").splitlines()[0]
    match = re.fullmatch(r"# yaml-language-server: \$schema=((?:\.\./)?\.schema/(\w+)\.json)", first)
    assert match is not None, path
    assert (path.parent / match[1]).resolve().is_file(), path
    return match[2]


def test_every_model_card_and_price_of_the_survey_is_there(content: CatalogContent) -> None:
    assert len(content.models) >= 243
    assert len(content.gpus) >= 66
    assert len(content.api_prices) >= 2057
    assert len(content.offers) >= 1030


def test_the_whole_catalog_is_read_in_seconds() -> None:
    began = time.process_time()
    read_catalog(ROOT)
    assert time.process_time() - began < 10


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_checked_in_schemas_are_those_of_the_code(name: str) -> None:
    stored = (ROOT / FOLDER / f"{name}.json").read_text(encoding="utf-8")
    assert stored == schema_text(SCHEMAS[name]), "run python -m costsvc.ingest.schemas"


def test_no_schema_is_left_over() -> None:
    assert {path.stem for path in (ROOT / FOLDER).iterdir()} == set(SCHEMAS)


def test_editors_see_no_mistake_in_any_file() -> None:
    validators = {
        name: Draft202012Validator(json.loads(schema_text(schema)), format_checker=None)
        for name, schema in SCHEMAS.items()
    }
    for path in FILES:
        values = json.loads(json.dumps(yaml.load(path.read_text("utf-8"), yaml.CSafeLoader), default=str))
        mistakes = [error.message for error in validators[schema_named_in(path)].iter_errors(values)]
        assert mistakes == [], path


def test_no_file_holds_control_characters_or_places_that_readers_lack() -> None:
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        strange = {sign for sign in text if unicodedata.category(sign) in {"Cc", "Cf"} and sign != "\n"}
        assert strange == set(), path
        assert UNFIT.search(text) is None, path


def test_every_fact_of_a_model_and_a_card_has_a_source_that_exists(content: CatalogContent) -> None:
    known = {source.id for source in content.sources}
    assert len(known) == len(content.sources)
    facts_of = [entry.fact_sources for entry in content.models] + [gpu.fact_sources for gpu in content.gpus]
    for facts in facts_of:
        fields = [fact.field for fact in facts]
        assert len(fields) == len(set(fields)) > 0
        assert {fact.source_id for fact in facts} <= known


def test_where_the_count_is_off_the_model_says_why(content: CatalogContent) -> None:
    explained = {entry.id for entry in content.models if entry.parameter_difference_reason is not None}
    assert {"gemma-4-e2b", "gemma-4-e4b", "step-3.7-flash"} <= explained
    assert len(explained) <= 20


def test_a100_may_mean_two_cards_and_h100_means_one(catalog: Catalog) -> None:
    with pytest.raises(Ambiguous) as caught:
        catalog.gpu("A100")
    assert caught.value.details["candidates"] == ["a100-sxm-40gb", "a100-sxm-80gb"]
    assert catalog.gpu("H100").id == "h100-sxm"


@pytest.mark.parametrize(
    ("instance", "gpu"),
    [
        ("p5.48xlarge", "h100-sxm"),
        ("a3-highgpu-8g", "h100-sxm"),
        ("Standard_ND96isr_H100_v5", "h100-sxm"),
        ("p4d.24xlarge", "a100-sxm-40gb"),
        ("Standard_NC40ads_H100_v5", "h100-nvl"),
        ("BM.GPU.MI300X.8", "mi300x"),
        ("trn1.32xlarge", "trainium1"),
    ],
)
def test_instances_are_known_by_their_card(catalog: Catalog, instance: str, gpu: str) -> None:
    assert catalog.gpu(instance).id == gpu


@pytest.mark.parametrize(
    ("spelling", "model"),
    [
        ("Meta-Llama-3-70B", "llama-3-70b"),
        ("meta-llama/Meta-Llama-3-70B-Instruct", "llama-3-70b"),
        ("llama 3 70b", "llama-3-70b"),
        ("nvidia/Llama-3.3-70B-Instruct-FP4", "llama-3.3-70b"),
        ("mistralai/Mixtral-8x7B-v0.1", "mixtral-8x7b"),
        ("google/gemma-3-27b-it", "gemma-3-27b"),
        ("Qwen/Qwen3-235B-A22B-Instruct-2507-FP8", "qwen3-235b-a22b-2507"),
    ],
)
def test_models_are_known_by_common_spellings(catalog: Catalog, spelling: str, model: str) -> None:
    assert catalog.model(spelling).id == model


@pytest.mark.parametrize(
    ("spelling", "plan"),
    [("AWQ", "int4"), ("gptq", "int4"), ("W8A8", "int8"), ("fp4", "nvfp4"), ("FP8-dynamic", "fp8")],
)
def test_quantisations_are_known_by_their_nicknames(catalog: Catalog, spelling: str, plan: str) -> None:
    assert catalog.weight_plan(spelling).id == plan


def test_rates_are_dense_and_links_one_way(catalog: Catalog) -> None:
    h100 = catalog.gpu("h100-sxm").spec
    assert h100.dense_flops_per_s["bf16"] == 989.4e12
    assert h100.dense_flops_per_s["fp8"] == 1978.9e12
    assert h100.memory_bytes_per_s == 3350e9
    assert h100.link_bytes_per_s == 450e9
    assert h100.usable_memory_bytes == 81_559 * 2**20
    assert catalog.gpu("mi355x").spec.dense_flops_per_s["fp4"] == 10_066.3e12
    assert catalog.gpu("b300-sxm").spec.dense_flops_per_s["fp4"] == 13_500e12


def test_software_never_sees_more_than_the_label(content: CatalogContent) -> None:
    for entry in content.gpus:
        assert 0.85 < entry.spec.usable_memory_bytes / entry.spec.memory_bytes <= 1, entry.id


@pytest.mark.parametrize(
    ("gpu", "weights", "rate"),
    [
        ("a100-sxm-80gb", "fp8", "bf16"),
        ("h100-sxm", "mxfp4", "bf16"),
        ("b200-sxm", "nvfp4", "fp4"),
        ("v100-sxm2-16gb", "bf16", "fp16"),
        ("tpu-v5e", "fp16", "bf16"),
        ("h100-sxm", "int4", "bf16"),
    ],
)
def test_a_type_that_a_card_lacks_runs_at_16_bit(catalog: Catalog, gpu: str, weights: str, rate: str) -> None:
    assert catalog.gpu(gpu).spec.arithmetic_of(catalog.dtype(weights).spec) == rate


def test_every_card_can_run_every_type(content: CatalogContent) -> None:
    for gpu in content.gpus:
        for dtype in content.dtypes:
            assert gpu.spec.arithmetic_of(dtype.spec) is not None, (gpu.id, dtype.spec.id)


def test_a_four_bit_type_counts_its_scales(catalog: Catalog) -> None:
    bytes_of = {
        dtype: catalog.dtype(dtype).spec.value_bytes for dtype in ("int4", "mxfp4", "nvfp4", "int4_g32")
    }
    assert bytes_of == {
        "int4": (4 + 16 / 128 + 4 / 128) / 8,
        "mxfp4": (4 + 8 / 32) / 8,
        "nvfp4": (4 + 8 / 16) / 8,
        "int4_g32": (4 + 16 / 32) / 8,
    }
