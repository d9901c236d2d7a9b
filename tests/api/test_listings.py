"""The catalog over HTTP."""

import pytest

from tests.api.conftest import TODAY, Client


@pytest.mark.parametrize("path", ["/models", "/gpus", "/prices", "/api-prices"])
def test_a_list_says_its_day_and_its_catalog(client: Client, path: str) -> None:
    listed = client.get(path).json()
    assert listed["as_of"] == TODAY.isoformat()
    assert listed["catalog_revision"] == client.get("/readyz").json()["catalog_revision"]
    assert len(listed["items"]) > 10


@pytest.mark.parametrize("path", ["/models", "/gpus", "/prices", "/api-prices"])
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
