"""Speculative decoding in a quote: what is said, what is refused, and that every answer has the same numbers."""

from io import BytesIO
from typing import Any

import pytest
from openpyxl import load_workbook

from costsvc.db.snapshot import Catalog
from costsvc.engine.speculation import expected_tokens
from costsvc.errors import CostsvcError, InvalidRequest, NotInCatalog, UnsupportedLayout
from costsvc.quoting.audit.workbook import audit_workbook, quote_workbook
from costsvc.quoting.compare import CompareRequest, compare
from costsvc.quoting.curve import CurveRequest, curve
from costsvc.quoting.given import parse_filter
from costsvc.quoting.quote import make_quote
from costsvc.quoting.request import parse_request
from costsvc.quoting.rows import RowMaker
from tests.docs.refresh import DAY

ASKED = {"model": "llama-3.1-70b", "gpu": "h100", "ctx": 8192}
DRAFT = {**ASKED, "speculation": "draft-model", "draft_model": "llama-3.2-1b"}


def quoted(catalog: Catalog, **asked: Any) -> Any:
    return make_quote(catalog, parse_request(asked), DAY)


def test_off_is_the_default_and_leaves_every_number_as_it_was(catalog: Catalog) -> None:
    silent, off = quoted(catalog, **ASKED), quoted(catalog, **ASKED, speculation="off")
    assert {*silent["request"]["defaults"]} - {*off["request"]["defaults"]} == {"speculation"}
    assert {k: v for k, v in silent.items() if k != "request"} == {
        k: v for k, v in off.items() if k != "request"
    }
    assert "speculation" not in silent["deployment"]


def test_the_answer_says_what_is_assumed_and_what_a_step_yields(catalog: Catalog) -> None:
    answer = quoted(catalog, **DRAFT, trace=True)
    section, request = answer["deployment"]["speculation"], answer["request"]
    assert (request["speculation"], request["draft_model"], request["draft_tokens"]) == (
        "draft-model",
        "llama-3.2-1b",
        4,
    )
    assert section["tokens_per_step"] == pytest.approx(expected_tokens(section["acceptance_rate"], 4))
    assumed = {one["name"]: one for one in answer["assumptions"]}
    assert assumed["draft_model_acceptance_share"]["kind"] == "estimate"
    assert any("acceptance_rate" in warning for warning in answer["warnings"])
    assert answer["uncertainty"]["extrapolated"]
    assert any("draft_model.layers" in source["covers"] for source in answer["sources"])
    terms = {term["name"]: term["value"] for term in answer["trace"]}
    assert terms["tokens_per_step"] == section["tokens_per_step"]
    mixed = terms["mixed_share"]
    step_s = (mixed * terms["mixed_step_s"] + (1 - mixed) * terms["decode_step_s"]) / terms["tokens_per_step"]
    assert answer["latency"]["tpot_ms"] == pytest.approx(1e3 * step_s)


def test_a_rate_that_is_given_is_no_assumption(catalog: Catalog) -> None:
    answer = quoted(catalog, **DRAFT, acceptance_rate=0.6, draft_tokens=2)
    assert answer["deployment"]["speculation"]["tokens_per_step"] == pytest.approx(1.96)
    assert "draft_model_acceptance_share" not in {one["name"] for one in answer["assumptions"]}
    assert not any("acceptance" in warning for warning in answer["warnings"])


@pytest.mark.parametrize(
    "asked",
    [
        DRAFT,
        {**ASKED, "speculation": "ngram"},
        {**DRAFT, "mode": "disaggregated"},
        {**DRAFT, "turns": 4, "prefix_tokens": 500},
        {**DRAFT, "allocation": "contiguous", "hit_rate": 0.5},
        {"model": "deepseek-v3", "gpu": "h200", "ctx": 8192, "speculation": "mtp"},
    ],
)
def test_prices_times_tokens_are_the_cost_of_the_request(catalog: Catalog, asked: dict[str, Any]) -> None:
    answer = quoted(catalog, **asked)
    request, prices = answer["request"], answer["prices"]
    cached = request["cached_input_tokens"]
    bill = (
        (request["input_tokens"] - cached) * float(prices["input"]["usd_per_mtok"])
        + cached * float(prices["cached_input"]["usd_per_mtok"])
        + request["output_tokens"] * float(prices["output"]["usd_per_mtok"])
    )
    assert bill / 1e6 == pytest.approx(float(answer["cost"]["request_usd"]), rel=1e-6)


def test_more_accepted_tokens_never_cost_more(catalog: Catalog) -> None:
    costs = [
        float(quoted(catalog, **DRAFT, tp=4, acceptance_rate=rate)["cost"]["request_usd"])
        for rate in (0, 0.3, 0.6, 0.9, 1)
    ]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] > float(quoted(catalog, **ASKED, tp=4)["cost"]["request_usd"])


def test_tables_comparisons_and_curves_have_the_numbers_of_the_quote(catalog: Catalog) -> None:
    usd = quoted(catalog, **DRAFT)["cost"]["request_usd"]
    row = RowMaker(catalog, DAY).row(DRAFT)
    assert (row["request_usd"], row["error"]) == (usd, "")
    compared: Any = compare(catalog, parse_filter(CompareRequest, DRAFT), DAY)
    assert compared["items"][0]["request_usd"] == usd
    drawn: Any = curve(catalog, parse_filter(CurveRequest, {**DRAFT, "points": 2}), DAY)
    assert next(one for one in drawn["items"] if one["ctx"] == 8192)["request_usd"] == usd


REFUSED: list[tuple[dict[str, Any], type[CostsvcError], str, str]] = [
    ({"speculation": "draft-model"}, InvalidRequest, "draft_model", "needs the smaller model"),
    ({"draft_model": "llama-3.2-1b"}, InvalidRequest, "draft_model", "speculation=draft-model"),
    (
        {"speculation": "mtp", "draft_model": "llama-3.2-1b"},
        InvalidRequest,
        "draft_model",
        "speculation is mtp",
    ),
    ({"draft_tokens": 2}, InvalidRequest, "speculation", "draft-model, mtp or ngram"),
    ({"acceptance_rate": 0}, InvalidRequest, "speculation", "draft-model, mtp or ngram"),
    ({"speculation": "ngram", "kv_cache": "off"}, InvalidRequest, "speculation", "recomputes"),
    (
        {"speculation": "ngram", "draft_tokens": 0},
        InvalidRequest,
        "draft_tokens",
        "greater than or equal to 1",
    ),
    (
        {"speculation": "ngram", "acceptance_rate": 1.1},
        InvalidRequest,
        "acceptance_rate",
        "less than or equal to 1",
    ),
    ({"speculation": "ngram", "acceptance_rate": "nan"}, InvalidRequest, "acceptance_rate", "finite"),
    ({"speculation": "eagle"}, InvalidRequest, "speculation", "'ngram'"),
    ({"speculation": "ngram", "output": 3}, InvalidRequest, "draft_tokens", "Lower draft_tokens"),
    ({"speculation": "mtp"}, UnsupportedLayout, "speculation", "knows none of Llama 3.1 70B"),
    ({"speculation": "ngram", "tp": 4, "pp": 2}, UnsupportedLayout, "pp", "Choose pp=1"),
    (
        {"speculation": "draft-model", "draft_model": "qwen3-0.6b"},
        UnsupportedLayout,
        "draft_model",
        "Smaller models that could draft: llama-3.2-1b",
    ),
    (
        {"speculation": "draft-model", "draft_model": "llama-3-8b", "ctx": 65_536},
        UnsupportedLayout,
        "draft_model",
        "at most 8,192 tokens",
    ),
    ({"speculation": "draft-model", "draft_model": "llama-9"}, NotInCatalog, "model", "llama-9"),
]


@pytest.mark.parametrize(("more", "kind", "field", "words"), REFUSED)
def test_what_cannot_be_is_refused_with_a_way_out(
    catalog: Catalog, more: dict[str, Any], kind: type[CostsvcError], field: str, words: str
) -> None:
    with pytest.raises(kind, match=words) as caught:
        quoted(catalog, **{**ASKED, **more})
    assert caught.value.field == field


def test_a_module_used_again_is_said_to_be_accepted_less(catalog: Catalog) -> None:
    asked = {"model": "deepseek-v3", "gpu": "h200", "ctx": 8192, "speculation": "mtp", "draft_tokens": 3}
    assert any("accepted less" in warning for warning in quoted(catalog, **asked)["warnings"])


def test_its_workbook_is_a_table_because_its_formulas_are_not_written(catalog: Catalog) -> None:
    book = load_workbook(BytesIO(quote_workbook(catalog, parse_request(DRAFT), DAY)))
    header, row = list(book.active.values)  # type: ignore[union-attr]
    shown = dict(zip(header, row, strict=True))
    assert shown["request_usd"] == pytest.approx(float(quoted(catalog, **DRAFT)["cost"]["request_usd"]))
    with pytest.raises(InvalidRequest, match="no workbook of live formulas"):
        audit_workbook(catalog, parse_request(DRAFT), DAY)
