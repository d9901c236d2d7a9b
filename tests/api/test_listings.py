"""The catalog over HTTP."""

import csv
import io
from decimal import Decimal
from typing import Any

import pytest

from tests.api.conftest import TODAY, Client

LISTS = ["/models", "/gpus", "/prices", "/api-prices", "/fx-rates", "/profiles"]
# Of each list a member that is a number, one that is text and one that some entries lack.
SORTS = [
    ("/models", "published_parameters"),
    ("/models", "family"),
    ("/models", "released"),
    ("/gpus", "memory_bytes_per_s"),
    ("/gpus", "vendor"),
    ("/gpus", "reference_usd_per_gpu_hour"),
    ("/prices", "usd_per_gpu_hour"),
    ("/prices", "provider"),
    ("/prices", "region"),
    ("/prices", "in_reference"),
    ("/api-prices", "output_usd_per_mtok"),
    ("/api-prices", "provider_model_id"),
    ("/api-prices", "cached_input_usd_per_mtok"),
    ("/fx-rates", "units_per_usd"),
    ("/profiles", "output_tokens"),
]


def items(client: Client, url: str) -> list[dict[str, Any]]:
    response = client.get(url)
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()["items"]
    return found


def comparable(name: str, value: Any) -> Any:
    if "usd" in name.split("_"):
        return Decimal(value)
    return value.casefold() if isinstance(value, str) else value


@pytest.mark.parametrize("path", LISTS)
def test_a_list_says_its_day_and_its_catalog(client: Client, path: str) -> None:
    listed = client.get(path).json()
    assert listed["as_of"] == TODAY.isoformat()
    assert listed["catalog_revision"] == client.get("/readyz").json()["catalog_revision"]
    assert len(listed["items"]) >= 10
    ids = [item["id"] for item in listed["items"]]
    assert ids == sorted(set(ids))


@pytest.mark.parametrize("path", LISTS)
def test_every_entry_of_a_list_can_be_opened_by_its_id(client: Client, path: str) -> None:
    for item in client.get(path).json()["items"][::200]:
        shown = client.get(f"{path}/{item['id']}")
        assert shown.status_code == 200, shown.text
        assert shown.json()["id"] == item["id"]


def test_a_model_is_opened_by_its_hugging_face_id_slash_and_all(client: Client) -> None:
    shown = client.get("/models/meta-llama/Meta-Llama-3-70B").json()
    assert shown["id"] == "llama-3-70b"
    assert shown["computed_parameters"] == pytest.approx(shown["published_parameters"], rel=0.02)
    assert {source["field"] for source in shown["sources"]} >= {"layers", "hidden_size"}


def test_a_day_can_be_asked_for(client: Client) -> None:
    listed = client.get("/prices?gpu=h100&as_of=2026-06-01").json()
    assert listed["as_of"] == "2026-06-01"
    assert all(item["since"] <= "2026-06-01" for item in listed["items"])
    assert {item["gpu"] for item in listed["items"]} == {"h100-sxm"}


def test_published_prices_of_a_model_name_who_asks_them(client: Client) -> None:
    items = client.get("/api-prices?model=llama-3-70b").json()["items"]
    assert {item["model"] for item in items} == {"llama-3-70b"}
    assert all(item["provider"] and item["source_id"] for item in items)


def test_models_can_be_searched(client: Client) -> None:
    ids = [item["id"] for item in client.get("/models?q=deepseek").json()["items"]]
    assert ids
    assert all("deepseek" in id for id in ids)


@pytest.mark.parametrize(("path", "name"), SORTS)
def test_a_list_is_sorted_by_a_member_and_what_is_not_known_comes_last(
    client: Client, path: str, name: str
) -> None:
    whole = items(client, path)
    known = [item for item in whole if item[name] is not None]
    unknown = [item for item in whole if item[name] is None]
    assert len({str(item[name]) for item in known}) > 1
    for sort, downward in ((name, False), (f"-{name}", True)):
        expected = sorted(known, key=lambda item: comparable(name, item[name]), reverse=downward)
        assert items(client, f"{path}?sort={sort}") == expected + unknown


@pytest.mark.parametrize("query", ["", "&sort=-usd_per_gpu_hour", "&sort=region"])
def test_pages_make_the_whole_list_in_any_order(client: Client, query: str) -> None:
    url = f"/prices?gpu=h100{query}"
    whole, pages, after = items(client, url), [], ""
    while page := items(client, f"{url}&limit=40{after}"):
        pages += page
        after = f"&after={page[-1]['id']}"
    assert pages == whole
    assert len(whole) > 80


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("sort", ["", "&sort=-id"])
def test_every_list_has_pages(client: Client, path: str, sort: str) -> None:
    whole = items(client, f"{path}?{sort}")
    assert items(client, f"{path}?limit=3{sort}") == whole[:3]
    assert items(client, f"{path}?limit=3&after={whole[2]['id']}{sort}") == whole[3:6]


@pytest.mark.parametrize("path", LISTS)
def test_a_table_is_the_whole_list_and_has_no_pages(client: Client, path: str) -> None:
    rows = list(csv.DictReader(io.StringIO(client.get(f"{path}.csv?sort=-id").text)))
    assert [row["id"] for row in rows] == [item["id"] for item in items(client, f"{path}?sort=-id")]
    for name in ("limit=2", "after=a"):
        for url in (f"{path}.csv?{name}", f"{path}.xlsx?{name}", f"{path}?{name}&format=xml"):
            refused = client.get(url)
            assert refused.status_code == 400
            assert "a table has none" in refused.json()["detail"]


@pytest.mark.parametrize(
    ("query", "field", "said"),
    [
        ("sort=usd_per_gpu_hours", "sort", "Did you mean usd_per_gpu_hour?"),
        ("sort=aliases", "sort", "Choose one of id, provider, gpu"),
        ("sort=--id", "sort", "which no entry of this list has"),
        ("sort=-region&after=nobody", "after", "Begin again without after"),
        ("limit=0", "limit", "limit is '0'"),
        ("limit=100000", "limit", "10000"),
    ],
)
def test_an_order_or_a_page_that_there_is_not_is_refused(
    client: Client, query: str, field: str, said: str
) -> None:
    refused = client.get(f"/prices?{query}")
    assert refused.status_code == 400
    assert refused.json()["errors"][0]["field"] == field
    assert said in refused.json()["detail"]


@pytest.mark.parametrize(
    ("url", "member"),
    [
        ("/models?q=Qwen3", "id"),
        ("/gpus?q=mi3", "id"),
        ("/prices?q=p5.48xlarge", "instance_type"),
        ("/api-prices?q=groq/", "id"),
        ("/fx-rates?q=eu", "id"),
        ("/profiles?q=azure", "id"),
    ],
)
def test_every_list_can_be_searched(client: Client, url: str, member: str) -> None:
    found = items(client, url)
    assert 0 < len(found) < len(items(client, url.partition("?")[0]))
    text = url.partition("q=")[2].casefold()
    assert all(text in item[member].casefold() for item in found)


def test_a_currency_shows_its_rate_of_the_day_and_those_before(client: Client) -> None:
    euro = client.get("/fx-rates/eur?as_of=2024-02-01").json()
    assert euro["id"] == "EUR"
    assert euro["units_per_usd"] == euro["history"][-1]["units_per_usd"]
    assert float(euro["units_per_usd"]) == pytest.approx(1 / 1.0837)
    assert [rate["first_day"] for rate in euro["history"]] == sorted(
        (rate["first_day"] for rate in euro["history"]), reverse=True
    )
    assert euro["sources"][0]["title"]
    assert client.get("/fx-rates/eur?as_of=2020-01-01").json()["units_per_usd"] is None
    assert items(client, "/fx-rates?as_of=2020-01-01") == []
    assert "EUR" in client.get("/fx-rates/EUX").json()["detail"]


def test_a_listed_rate_is_the_one_that_a_quote_is_shown_in(client: Client) -> None:
    quote = client.get("/quote?model=llama-3-8b&gpu=h100&ctx=2048&currency=JPY").json()
    listed = next(item for item in items(client, "/fx-rates") if item["id"] == "JPY")
    said = {name: value for name, value in _walk(quote) if name == "units_per_usd"}
    assert said == {"units_per_usd": listed["units_per_usd"]}


def _walk(node: Any) -> list[tuple[str, Any]]:
    if isinstance(node, list):
        return [pair for one in node for pair in _walk(one)]
    if not isinstance(node, dict):
        return []
    return [*node.items(), *(pair for one in node.values() for pair in _walk(one))]
