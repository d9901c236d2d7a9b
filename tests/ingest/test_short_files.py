"""Token prices, judgements, providers and schemas of the files."""

import json
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from costsvc.db import entries
from costsvc.ingest.files import read_catalog
from costsvc.ingest.schemas import SCHEMAS, write_schemas

Refusal = Callable[[str, str, str], str]


def test_token_prices_are_read_and_missing_ones_stay_unknown(root: Path) -> None:
    price = read_catalog(root).api_prices[0]
    assert (price.provider, price.model_id, price.observed) == ("AWS", "tiny", date(2026, 11, 1))
    assert (price.input_usd_per_mtok, price.output_usd_per_mtok) == (Decimal("0.10"), Decimal("0.30"))
    assert price.cached_input_usd_per_mtok is None
    assert price.notes == "the source gives the month only"


def test_a_token_price_that_is_surely_wrong_is_out_of_reach(root: Path) -> None:
    price = read_catalog(root).api_prices[1]
    assert (price.input_usd_per_mtok, price.output_usd_per_mtok) == (None, None)
    assert price.notes is not None
    assert price.notes.startswith("excluded: surely wrong (printed: input 5.0, output 0.15)")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"0.10"', '"0"', "greater than 0"),
        ('"0.10"', "0.10", "write money in quotes"),
        ("id: bedrock/tiny, ", "", "field 'observations.0.models.0.id'"),
    ],
)
def test_a_token_price_of_zero_or_a_float_is_refused(refusal: Refusal, old: str, new: str, said: str) -> None:
    assert said in refusal("api_prices/aws.yaml", old, new)


def test_a_source_speaks_once_a_day(root: Path) -> None:
    path = root / "api_prices" / "aws.yaml"
    text = path.read_text("utf-8")
    path.write_text(text + text.partition("observations:\n")[2], "utf-8")
    with pytest.raises(Exception, match="same source and day"):
        read_catalog(root)


def test_a_judgement_keeps_its_scope_and_scatter(root: Path) -> None:
    judgement = next(one for one in read_catalog(root).judgements if one.name == "gemm_mfu_share")
    assert judgement == entries.Judgement(
        name="gemm_mfu_share",
        value=0.7,
        unit="1",
        kind="measured",
        dated=date(2026, 11, 29),
        source_id="calibration/examples",
        scope=(("dtype", "fp8"), ("gpu", "h100"), ("stack", "vllm")),
        points=12,
        scatter_ratio=0.1,
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("kind: measured", "kind: estimate", "An estimate states its reason"),
        ("value: 0.7", "value: .nan", "field 'judgements.0.value'"),
        ("value: 0.7", "value: high", "field 'judgements.0.value'"),
        ("value: 0.7", "value: -0.7", "field 'judgements.0.value'"),
        ("value: 0.7", "value: 70.0", "gemm_mfu_share is 70; a share is at most 1"),
        ("value: 0.7", "value: 0.0", "gemm_mfu_share is 0; it has to be more"),
        ("{gpu: h100,", "{colour: red, gpu: h100,", "field 'judgements.0.scope"),
        ("name: gemm_mfu_share", "name: Gemm MFU", "field 'judgements.0.name'"),
        ("scatter_ratio: 0.1", "scatter_ratio: -0.1", "field 'judgements.0.scatter_ratio'"),
    ],
)
def test_a_judgement_without_ground_is_refused(refusal: Refusal, old: str, new: str, said: str) -> None:
    assert said in refusal("calibration/examples.yaml", old, new)


def test_a_spelling_of_two_providers_is_refused(refusal: Refusal) -> None:
    said = refusal("providers.yaml", "[AWS EC2]}\n", "[AWS EC2]}\n  - {id: amazon, name: aws}\n")
    assert "'aws' means both aws and amazon" in said


def test_schemas_are_written_for_editors(tmp_path: Path) -> None:
    write_schemas(tmp_path)
    written = {path.stem: json.loads(path.read_text("utf-8")) for path in (tmp_path / ".schema").iterdir()}
    assert set(written) == set(SCHEMAS)
    assert written["model"]["additionalProperties"] is False
    assert set(written["model"]["required"]) >= {"id", "layers", "attention", "ffn", "sources"}
