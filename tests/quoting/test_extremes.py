"""The least and the most that every parameter admits: a sound quote or a refusal in words, never a fault."""

import math
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from costsvc.errors import CostsvcError, InvalidRequest
from costsvc.quoting.audit.workbook import quote_workbook
from costsvc.quoting.quote import make_quote
from costsvc.quoting.request import QuoteRequest, parse_request
from tests.engine.shapes import TODAY, shipped
from tests.fuzz.sound import is_sound_quote

PLAIN = {"model": "llama-3.1-70b", "gpu": "h100", "ctx": 32_768}
SHARED = {**PLAIN, "prefix_tokens": 1000, "turns": 3, "think_s": 20, "rps": 2}
PROFILE: dict[str, Any] = {
    "input_tokens": 4000,
    "output_tokens": 300,
    "system_prompt_tokens": 500,
    "turns": 3,
    "rps": 2,
    "documents": {"count": 1000, "tokens": 800, "share": 0.5},
}
TINY = (5e-324, 1e-300, 1e-100, 1e-30, 1e-15, 1e-12, 1e-9, 1e-6)
# What a parameter has no effect without.
WITH: Mapping[str, Mapping[str, Any]] = {
    "acceptance_rate": {**PLAIN, "speculation": "ngram"},
    "fx_rate": {**PLAIN, "currency": "EUR"},
    **dict.fromkeys(
        (
            "prefix_share",
            "think_s",
            "turns",
            "retention_s",
            "dram_gb_per_gpu",
            "nvme_gb_per_gpu",
            "object_gb_per_gpu",
        ),
        SHARED,
    ),
}
NUMBERS = [name for name, field in QuoteRequest.model_fields.items() if "float" in str(field.annotation)]


@pytest.fixture(autouse=True)
def nothing_is_divided_by_nothing() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield


def _is_sound_or_refused(given: Mapping[str, Any]) -> bool:
    try:
        is_sound_quote(make_quote(shipped(), parse_request(given), TODAY))
    except CostsvcError:
        return False
    return True


def test_every_number_is_tried() -> None:
    assert {*WITH} - {"fx_rate"} <= {*NUMBERS}
    assert {"hit_rate", "rps", "utilization", "margin", "ttft_ms", "tpot_ms"} <= {*NUMBERS}


@pytest.mark.parametrize("name", [*NUMBERS, "price_usd_per_gpu_hour", "fx_rate"])
def test_a_number_next_to_nothing_or_as_large_as_may_be(name: str) -> None:
    most = (1.0, 100.0, 1e4, 1e6, 1e9)
    tried = [_is_sound_or_refused({**WITH.get(name, PLAIN), name: value}) for value in (*TINY, *most)]
    assert any(tried) or name in ("ttft_ms", "tpot_ms")


@pytest.mark.parametrize("part", [*TINY, 0.0])
@pytest.mark.parametrize("name", ["system_prompt_share", "hour", "documents"])
def test_a_part_of_a_profile_next_to_nothing(name: str, part: float) -> None:
    given = {
        "system_prompt_share": {**PROFILE, "system_prompt_share": part},
        "hour": {**PROFILE, "hourly_shape": [part, *[1.0] * 23]},
        "documents": {**PROFILE, "documents": {**PROFILE["documents"], "share": part}},
    }[name]
    sound = _is_sound_or_refused({"model": "llama-3.1-8b", "gpu": "h100", "profile": given})
    assert sound or (name == "hour" and 0 < part < 1e-9)


def test_an_hour_of_next_to_nothing_is_refused_in_words() -> None:
    profile = {**PROFILE, "hourly_shape": [1e-320, *[1.0] * 23]}
    with pytest.raises(InvalidRequest, match="give 0 where nothing comes"):
        parse_request({"model": "llama-3.1-8b", "gpu": "h100", "profile": profile})


@pytest.mark.parametrize("attribution", ["marginal", "step", "pools"])
def test_the_price_of_cached_tokens_has_a_limit_where_there_are_hardly_any(attribution: str) -> None:
    def price(hit_rate: float) -> float:
        mode = "disaggregated" if attribution == "pools" else "colocated"
        given = {**PLAIN, "attribution": attribution, "mode": mode, "hit_rate": hit_rate}
        quote: Any = make_quote(shipped(), parse_request(given), TODAY)
        return float(quote["prices"]["cached_input"]["usd_per_mtok"])

    none = price(0.0)
    for hit_rate in (1e-320, 1e-100, 1e-16, 1e-13, 1e-11, 1e-9, 1e-8, 1e-6):
        assert math.isclose(price(hit_rate), none, rel_tol=1e-3), hit_rate


def test_the_workbook_of_a_quote_with_hardly_any_hits_is_made() -> None:
    given = parse_request({**PLAIN, "hit_rate": 1e-320})
    assert quote_workbook(shipped(), given, TODAY).startswith(b"PK")
