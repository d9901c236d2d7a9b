"""Parameters from a query and from JSON: said once each, or refused by name."""

import pytest

from costsvc.errors import InvalidRequest, RepeatedParameter, UnknownParameter
from costsvc.quoting.given import MAX_PARAMETERS, from_json, from_query, parse_filter
from costsvc.quoting.listing.prices import PriceFilter


def test_a_query_is_decoded_and_blanks_are_kept() -> None:
    assert from_query("model=a%2Fb+c&gpu=") == {"model": "a/b c", "gpu": ""}


def test_what_never_changes_an_answer_is_left_out() -> None:
    assert from_query("v=1&v=2&api_key=secret&ctx=8") == {"ctx": "8"}


def test_a_name_that_stands_twice_is_refused_even_with_one_value() -> None:
    with pytest.raises(RepeatedParameter, match="'ctx' is given more than once"):
        from_query("ctx=8&ctx=8")


def test_a_query_of_endless_parameters_is_refused_before_it_is_read() -> None:
    with pytest.raises(InvalidRequest, match=f"more than {MAX_PARAMETERS} parameters"):
        from_query("&".join(f"p{n}=1" for n in range(MAX_PARAMETERS + 1)))


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"\xff", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b'{"rps": NaN}', "NaN is not a number of JSON"),
        (b'{"rps": -Infinity}', "-Infinity is not a number of JSON"),
        (b'{"ctx": ' + b"9" * 5000 + b"}", "not valid JSON"),
        (b"[1]", "not an object"),
    ],
)
def test_a_body_that_is_no_json_object_says_so(body: bytes, complaint: str) -> None:
    with pytest.raises(InvalidRequest, match=complaint):
        from_json(body)


def test_a_member_that_stands_twice_is_refused_at_any_depth() -> None:
    with pytest.raises(RepeatedParameter, match="'turns'"):
        from_json(b'{"profile": {"turns": 1, "turns": 2}}')


def test_an_unknown_filter_names_the_nearest() -> None:
    with pytest.raises(UnknownParameter, match=r"no parameter 'marekt'\. Did you mean 'market'"):
        parse_filter(PriceFilter, {"marekt": "spot"})


def test_a_filter_out_of_bounds_names_the_choices() -> None:
    with pytest.raises(InvalidRequest, match="market is 'cheap'; it should be 'on-demand', 'spot'"):
        parse_filter(PriceFilter, {"market": "cheap"})


@pytest.mark.parametrize(
    "body", [b'{"a": "\\ud800"}', b'{"\\uDC00": 1}', b'{"a": "\xed\xa0\x80"}', '{"a": 1}'.encode("utf-16")]
)
def test_half_a_character_is_refused_and_a_whole_one_is_not(body: bytes) -> None:
    with pytest.raises(InvalidRequest, match="not valid JSON"):
        from_json(body)
    assert from_json(b'{"a": "\\ud83d\\ude00"}') == {"a": "\U0001f600"}
