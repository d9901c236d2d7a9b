"""What may be asked: every bound and every contradiction has its own sentence and names its field."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costsvc.errors import CostsvcError, InvalidRequest, UnknownParameter
from costsvc.quoting.quote import make_quote
from costsvc.quoting.request import PARAMETERS, parse_request
from tests.engine.shapes import TODAY, shipped

GOOD: dict[str, Any] = {"model": "llama-3-70b", "gpu": "h100", "ctx": "8192"}
PROFILE: dict[str, Any] = {"input_tokens": 1_000, "output_tokens": 100}

CONTRADICTIONS: list[tuple[dict[str, Any], str, str]] = [
    ({"ctx": None}, "ctx", "ctx is missing: give the context per request in tokens, such as ctx=8192"),
    ({"profile": PROFILE}, "profile", "profile already says what ctx would; give one or the other"),
    ({"profile": PROFILE, "ctx": None, "turns": 3}, "profile", "already says what turns would"),
    ({"output": "8192"}, "output", "output is 8192 but ctx, prompt plus output, is 8192"),
    ({"output": "9000"}, "output", "output is 9000 but ctx, prompt plus output, is 8192"),
    ({"ctx": "1"}, "ctx", "ctx is 1: a request needs at least one prompt and one output token"),
    ({"hit_rate": "0.5", "turns": "3"}, "hit_rate", "what it would follow from"),
    ({"hit_rate": "0.5", "prefix_tokens": "100"}, "hit_rate", "what it would follow from"),
    ({"prefix_share": "0.5"}, "prefix_share", "needs prefix_tokens: how long is the shared prompt?"),
    ({"think_s": "10"}, "think_s", "needs turns: the pause is between the turns"),
    ({"fx_rate": "0.9"}, "fx_rate", "fx_rate is given but currency is USD"),
    (
        {"price_usd_per_gpu_hour": "2", "provider": "AWS"},
        "price_usd_per_gpu_hour",
        "so provider and region",
    ),
    (
        {"price_usd_per_gpu_hour": "2", "region": "us"},
        "price_usd_per_gpu_hour",
        "so provider and region",
    ),
    ({"attribution": "pools"}, "attribution", "needs mode=disaggregated: one pool has no separate bills"),
    ({"kv_cache": "off", "hit_rate": "0.5"}, "kv_cache", "keeps nothing, so no prefix can be found in it"),
    ({"kv_cache": "off", "turns": "2"}, "kv_cache", "keeps nothing, so no prefix can be found in it"),
]

OUT_OF_BOUNDS = [
    (
        "ctx",
        [
            "0",
            "-5",
            "1.5",
            "nan",
            "inf",
            "1e400",
            "",
            " ",
            "eight",
            "八千",
            "100000001",
            "0x20",
            "\u0663\u066b\u0665",
        ],
    ),
    ("output", ["0", "-1", "nan", "2.5"]),
    ("gpus", ["0", "-1", "4097", "1.5", "many"]),
    ("tp", ["0", "-2", "5000", "NaN"]),
    ("pp", ["0"]),
    ("ep", ["0"]),
    ("dp", ["-1"]),
    ("prefix_tokens", ["-1", "0.5"]),
    ("prefix_share", ["-0.1", "1.1", "nan", "inf"]),
    ("turns", ["0", "0.5", "10001", "nan", "inf"]),
    ("think_s", ["0", "-1", "1e300", "nan"]),
    ("retention_s", ["0", "-1", "nan", "1e12"]),
    ("hit_rate", ["1", "1.5", "-0.1", "nan", "inf", "half"]),
    ("rps", ["0", "-1", "nan", "inf", "1e10"]),
    ("ttft_ms", ["0", "-1", "inf"]),
    ("tpot_ms", ["0", "-1", "nan"]),
    ("price_usd_per_gpu_hour", ["0", "-2", "nan", "inf", "1000001", "cheap"]),
    ("utilization", ["0", "1.01", "nan", "-0.5"]),
    ("margin", ["-0.1", "101", "inf"]),
    ("currency", ["us", "EURO", "", "€"]),
    ("fx_rate", ["0", "-1", "nan"]),
    ("mode", ["both", "Colocated", ""]),
    ("allocation", ["slab"]),
    ("kv_cache", ["maybe", "2"]),
    ("speculation", ["eagle", "on"]),
    ("draft_model", [""]),
    ("draft_tokens", ["0", "33", "1.5"]),
    ("acceptance_rate", ["-0.1", "1.1", "nan", "inf"]),
    ("slo", ["fast"]),
    ("market", ["cheap"]),
    ("attribution", ["fair"]),
    ("as_of", ["tomorrow", "2026-13-01", "29.11.2026"]),
    ("revision", ["0", "-1", "x"]),
    ("private_revision", ["0", "-1", "x"]),
    ("model", ["", "x" * 201]),
    ("gpu", ["", "g" * 500]),
    ("weights", [""]),
    ("stack", [""]),
]


@pytest.mark.parametrize(("changes", "field", "words"), CONTRADICTIONS)
def test_each_contradiction_is_named_with_its_field(changes: dict[str, Any], field: str, words: str) -> None:
    given = {name: value for name, value in {**GOOD, **changes}.items() if value is not None}
    with pytest.raises(InvalidRequest) as caught:
        parse_request(given)
    assert words in caught.value.message
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("field", "value"), [(field, value) for field, values in OUT_OF_BOUNDS for value in values]
)
def test_each_bound_has_a_sentence_with_the_field_and_the_value(field: str, value: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_request({**GOOD, field: value})
    assert caught.value.field == field
    assert caught.value.message.startswith(f"{field} is ")
    assert "; it " in caught.value.message
    assert value[:50] in caught.value.message
    assert len(caught.value.message) < 300


def test_every_parameter_but_words_of_the_catalog_is_bounded() -> None:
    words = {"provider", "region", "kv", "profile", "trace"}
    tiers = {"dram_gb_per_gpu", "nvme_gb_per_gpu", "object_gb_per_gpu"}
    assert set(PARAMETERS) - {field for field, _ in OUT_OF_BOUNDS} == words | tiers


def test_several_faults_are_all_named() -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_request({"gpu": "h100", "ctx": "-1", "tp": "x"})
    errors = caught.value.details["errors"]
    assert isinstance(errors, list)
    assert [error["field"] for error in errors] == ["model", "ctx", "tp"]
    assert errors[0]["detail"] == "model is missing."


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("contxt", "ctx"),
        ("modle", "model"),
        ("prefix_token", "prefix_tokens"),
        ("Model", "model"),
        ("dtype", "weights"),
        ("input_tokens", "ctx"),
    ],
)
def test_an_unknown_parameter_names_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(UnknownParameter, match=f"no parameter '{name}'. Did you mean '?.*{nearest}'"):
        parse_request({**GOOD, name: "1"})


def test_a_parameter_like_no_other_gets_the_whole_list() -> None:
    with pytest.raises(UnknownParameter) as caught:
        parse_request({**GOOD, "zzzzzz": "1"})
    assert "Known are: model, gpu, ctx" in caught.value.message


@pytest.mark.parametrize(
    ("profile", "words"),
    [
        ({**PROFILE, "system_prompt_tokens": 1_000}, "leave at least one token that is not shared"),
        ({**PROFILE, "max_context_tokens": 1_050}, "below the mean request"),
        ({**PROFILE, "input_cv": -1}, "input_cv is -1"),
        ({**PROFILE, "turns": 0}, "turns is 0"),
        ({**PROFILE, "output_tokens": 0}, "output_tokens is 0"),
        ({**PROFILE, "wobble": 1}, "wobble"),
        ({"input_tokens": 10}, "output_tokens is missing"),
    ],
)
def test_a_profile_that_contradicts_itself_is_refused(profile: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_request({"model": "llama-3-70b", "gpu": "h100", "profile": profile})
    assert words in caught.value.message
    assert (caught.value.field or "").startswith("profile")


def test_texts_of_a_query_become_values() -> None:
    request = parse_request({**GOOD, "kv_cache": "off", "trace": "1", "hit_rate": "0", "utilization": "0.5"})
    assert (request.ctx, request.kv_cache, request.trace, request.utilization) == (8_192, False, True, 0.5)


strange = st.one_of(
    st.sampled_from(
        [
            "nan",
            "inf",
            "-inf",
            "1e308",
            "-0",
            "0",
            "\uff11\uff12",
            "é",
            "\u202e",
            "null",
            "true",
            "[]",
            "{}",
            "%",
        ]
    ),
    st.text(max_size=12),
    st.integers(-10, 10**20).map(str),
    st.floats().map(repr),
)


@settings(max_examples=150, deadline=None)
@given(changes=st.dictionaries(st.sampled_from(PARAMETERS), strange, max_size=4))
def test_no_text_whatever_makes_anything_but_an_answer_or_a_sentence(changes: dict[str, str]) -> None:
    message, answer = asked({**GOOD, **changes})
    if message is None:
        assert float(answer["cost"]["request_usd"]) > 0
    else:
        assert message.endswith((".", "?", ")"))
        assert 10 < len(message) < 2_500


def asked(given: dict[str, str]) -> tuple[str | None, Any]:
    """The sentence of a refusal, or the answer."""
    try:
        return None, make_quote(shipped(), parse_request(given), TODAY)
    except CostsvcError as error:
        return error.message, None


@pytest.mark.parametrize(
    ("profile", "words"),
    [
        ({"input_tokens": 1e300}, "it is refused: unable to parse"),
        ({"hourly_shape": [1, 2]}, "it should have at least 24 items"),
    ],
)
def test_what_is_wrong_in_a_profile_is_a_sentence(profile: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_request(
            {"model": "m", "gpu": "g", "profile": {"output_tokens": 20, "input_tokens": 10, **profile}}
        )
    assert words in caught.value.message


def test_a_hit_rate_leaves_a_token_to_compute() -> None:
    asked = {"model": "llama-3.1-70b", "gpu": "h100", "ctx": 100, "hit_rate": 0.9999}
    with pytest.raises(
        InvalidRequest, match=r"computes at least one: raise ctx or lower hit_rate to 0\.98"
    ) as caught:
        make_quote(shipped(), parse_request(asked), TODAY)
    assert caught.value.field == "hit_rate"


@pytest.mark.parametrize("context", [100, 8192, 99_991])
def test_the_hit_rate_that_is_advised_is_taken(context: int) -> None:
    asked = {"model": "llama-3.1-70b", "gpu": "h100", "ctx": context}
    with pytest.raises(InvalidRequest) as caught:
        make_quote(shipped(), parse_request({**asked, "hit_rate": 0.999999}), TODAY)
    advised = caught.value.message.removesuffix(".").rpartition(" ")[2]
    assert make_quote(shipped(), parse_request({**asked, "hit_rate": advised}), TODAY)
