"""What is refused says which field, and what it may have been meant as."""

from typing import Any

import pytest

from costsvc.errors import InvalidRequest
from costsvc.quoting.budget import parse_budget
from costsvc.quoting.given import parse_filter
from costsvc.quoting.launch.request import LaunchRequest
from costsvc.quoting.request import parse_request

GOOD = {"model": "llama-3-70b", "gpu": "h100", "ctx": "8192"}
LENGTHS = {"input_tokens": 7680, "output_tokens": 512}


def refusal(given: dict[str, Any]) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        parse_request(given)
    return caught.value


@pytest.mark.parametrize(
    ("field", "text", "advice"),
    [
        ("ctx", "8,192", "a whole number, in digits alone, such as 8192."),
        ("ctx", "128k", "such as 128000 or 131072."),
        ("ctx", "many", "a whole number, in digits alone."),
        ("utilization", "80%", "such as 0.8."),
        ("utilization", "80", "less than or equal to 1: 80 % is 0.8."),
        ("hit_rate", "50", "less than 1: 80 % is 0.8."),
        ("tpot_ms", "50ms", "with a point before its decimals and no unit."),
        ("price_usd_per_gpu_hour", "$2,50", "such as 2.5."),
        ("price_usd_per_gpu_hour", "1,250", "such as 1250 or 1.25."),
        ("as_of", "29.11.2026", "a day, written like 2026-11-29."),
        ("kv_cache", "maybe", "on or off."),
        ("currency", "dollars", "written like EUR."),
    ],
)
def test_a_value_in_another_spelling_is_told_the_one_to_use(field: str, text: str, advice: str) -> None:
    assert refusal({**GOOD, field: text}).message.endswith(advice)


def test_a_currency_may_be_in_either_case() -> None:
    assert parse_request({**GOOD, "currency": "eur"}).currency == "EUR"


@pytest.mark.parametrize(
    ("part", "field", "advice"),
    [
        ({"input_token": 1}, "profile.input_token", "Did you mean 'input_tokens'?"),
        ({"documents": {"count": 4, "token": 9}}, "profile.documents.token", "Did you mean 'tokens'?"),
        ({"system_prompts": [{"zap": 1}]}, "profile.system_prompts.0.zap", "Known are: tokens, share."),
    ],
)
def test_an_unknown_field_inside_a_body_is_named_by_its_path(
    part: dict[str, Any], field: str, advice: str
) -> None:
    refused = refusal({"model": "m", "gpu": "g", "profile": {**LENGTHS, **part}})
    assert f"There is no field '{field}'. {advice}" in refused.message
    errors = refused.details["errors"]
    assert isinstance(errors, list)
    assert field in [error["field"] for error in errors]


def test_a_line_of_a_budget_is_told_the_name_that_it_lacks() -> None:
    with pytest.raises(InvalidRequest, match=r"no field 'lines\.0\.lable'\. Did you mean 'label'\?"):
        parse_budget({"first_month": "2027-01", "lines": [{"lable": "chat"}]})


def test_a_question_ends_as_one_and_names_its_field() -> None:
    with pytest.raises(InvalidRequest, match=r"will come\?$") as caught:
        parse_filter(LaunchRequest, GOOD)
    assert caught.value.field == "users"
