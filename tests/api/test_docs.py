"""What the service says about itself, and to pages of other origins."""

import re
from base64 import b64encode
from hashlib import sha256

import pytest

from costsvc.quoting.request import QuoteRequest
from tests.api.conftest import Client

QUOTE = "/quote?model=llama-3-70b&gpu=h100&ctx=8192"


def test_the_page_of_calls_loads_nothing_from_elsewhere(client: Client) -> None:
    page = client.get("/docs")
    assert page.status_code == 200
    assert not re.search(r"""(src|href)=["'](https?:)?//""", page.text)
    assert "<script" not in page.text


@pytest.mark.parametrize("name", sorted(set(QuoteRequest.model_fields) - {"profile"}))
def test_every_parameter_of_a_quote_is_described_with_the_words_of_its_field(
    client: Client, name: str
) -> None:
    described = {
        parameter["name"]: parameter
        for parameter in client.get("/docs/openapi.json").json()["paths"]["/quote"]["get"]["parameters"]
    }
    assert described[name]["description"] == QuoteRequest.model_fields[name].description
    assert f"<code>{name}</code>" in client.get("/docs").text


def test_bounds_are_described(client: Client) -> None:
    described = client.get("/docs/openapi.json").json()["paths"]["/quote"]["get"]["parameters"]
    schemas = {parameter["name"]: parameter["schema"] for parameter in described}
    assert (schemas["ctx"]["minimum"], schemas["ctx"]["maximum"]) == (1, 100_000_000)
    assert schemas["slo"]["enum"] == ["interactive", "strict", "batch"]
    assert schemas["hit_rate"]["exclusiveMaximum"] == 1


def test_writes_say_that_they_need_a_key(client: Client) -> None:
    paths = client.get("/docs/openapi.json").json()["paths"]
    assert paths["/prices"]["post"]["security"] == [{"key": []}]
    assert paths["/quote"]["post"]["security"] == [{}, {"key": []}], "a key is optional there"


@pytest.mark.parametrize("url", [QUOTE, "/quote", "/nowhere"])
def test_pages_of_any_origin_may_read_every_answer(client: Client, url: str) -> None:
    for headers in ({}, {"Origin": "https://sheets.example"}):
        response = client.get(url, headers=headers)
        assert response.headers["Access-Control-Allow-Origin"] == "*"
        assert "X-Catalog-Revision" in response.headers["Access-Control-Expose-Headers"]


def test_pages_of_other_origins_may_not_write(client: Client) -> None:
    for url in ("/prices", "/prices/x", "/profiles", "/quotes"):
        allowed = client.options(url).headers["Access-Control-Allow-Methods"]
        assert "POST" not in allowed, url
        assert "Access-Control-Allow-Origin" not in client.post(url, json={}).headers
    for url in ("/quote", "/quotes/batch", "/launch-check", "/traces", "/budget"):
        assert "POST" in client.options(url).headers["Access-Control-Allow-Methods"], url


@pytest.mark.parametrize(
    "url",
    [QUOTE, "/quote", "/nowhere", "/docs", "/problems", "/", "/assets/style.css", "/metrics", "/healthz"],
)
def test_every_response_says_what_a_browser_may_do_with_it(client: Client, url: str) -> None:
    response = client.get(url)
    (policy,) = response.headers.get_list("Content-Security-Policy")
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert response.headers.get_list("X-Content-Type-Options") == ["nosniff"]
    assert response.headers.get_list("Referrer-Policy") == ["no-referrer"]


def test_the_policy_allows_the_style_of_the_pages_of_text_and_no_other(client: Client) -> None:
    page = client.get("/docs")
    styles = re.findall(r"<style>(.*?)</style>", page.text, re.DOTALL)
    named = [f"sha256-{b64encode(sha256(style.encode()).digest()).decode()}" for style in styles]
    assert re.findall(r"'(sha256-[^']+)'", page.headers["Content-Security-Policy"]) == named


def test_a_browser_that_asks_first_gets_leave(client: Client) -> None:
    response = client.options(
        "/quote", headers={"Origin": "https://sheets.example", "Access-Control-Request-Method": "POST"}
    )
    assert response.status_code == 204
    assert "POST" in response.headers["Access-Control-Allow-Methods"]
    assert "X-API-Key" in response.headers["Access-Control-Allow-Headers"]
