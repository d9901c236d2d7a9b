"""Profiles over HTTP: listed, quoted by id, posted with an admin key."""

from collections.abc import Callable
from pathlib import Path
from shutil import copy
from typing import Any

import pytest
from litestar.testing import TestClient

from costsvc.app import create_app
from costsvc.cli.serve import prepare
from tests.api.conftest import TODAY, Client, settings_for

POSTED: dict[str, Any] = {
    "id": "help-desk",
    "name": "Help desk",
    "description": "Questions to a help desk.",
    "traffic": {
        "input_tokens": 3000,
        "output_tokens": 200,
        "max_context_tokens": 8000,
        "documents": {"count": 100, "tokens": 1500},
    },
    "source": {"title": "Our gateway, one week", "kind": "derived"},
}


@pytest.fixture
def writable(
    loaded: Path, tmp_path: Path, make_key: Callable[[Path, Any], str]
) -> tuple[Path, dict[str, str]]:
    """A database of one's own, and the header that may write to it."""
    path = tmp_path / "costsvc.db"
    copy(loaded, path)
    return path, {"X-API-Key": make_key(path, "admin")}


def test_shipped_profiles_are_listed_with_their_means(client: Client) -> None:
    items = {row["id"]: row for row in client.get("/profiles").json()["items"]}
    assert {
        "chat",
        "rag",
        "long-document",
        "code-completion",
        "agent-tools",
        "batch-summarisation",
        "mooncake-conversation",
        "azure-code-2023",
    } <= set(items)
    assert items["agent-tools"]["requests_per_session"] == 24
    assert items["mooncake-conversation"]["input_tokens"] == pytest.approx(12_035, rel=0.02)


def test_a_profile_shows_every_number_with_its_source(client: Client) -> None:
    shown = client.get("/profiles/autocomplete").json()
    assert shown["id"] == "code-completion"
    assert {source["field"] for source in shown["sources"]} == set(shown["traffic"])


def test_a_quote_by_id_is_the_quote_of_the_profile_in_full(client: Client) -> None:
    by_id = client.get("/quote?model=llama-3-70b&gpu=h100&profile=rag").json()
    traffic = client.get("/profiles/rag").json()["traffic"]
    in_full = client.post("/quote", json={"model": "llama-3-70b", "gpu": "h100", "profile": traffic}).json()
    assert by_id["prices"] == in_full["prices"]
    assert by_id["traffic"]["profile"] == "rag"
    assert in_full["traffic"]["profile"] is None


def test_a_posted_profile_is_quoted_and_outlives_loading_the_files(
    writable: tuple[Path, dict[str, str]],
) -> None:
    path, header = writable
    with TestClient(create_app(settings_for(path), today=lambda: TODAY)) as client:
        made = client.post("/profiles", json=POSTED, headers=header)
        assert (made.status_code, made.headers["location"]) == (201, "/profiles/help-desk")
        quote = client.get("/quote?model=llama-3-70b&gpu=h100&profile=help-desk").json()
        assert quote["request"]["input_tokens"] == 3000
        assert quote["prefix_caching"]["hit_rate"] > 0
        again = client.post("/profiles", json=POSTED, headers=header)
        assert again.status_code == 400
        assert "already means the profile 'help-desk'" in again.json()["detail"]
    prepare(settings_for(path))
    with TestClient(create_app(settings_for(path), today=lambda: TODAY)) as client:
        kept = client.get("/profiles/help-desk").json()
        assert kept["traffic"] == POSTED["traffic"]
        assert kept["sources"][0]["title"] == "Our gateway, one week"


def test_without_an_admin_key_no_profile_is_posted(
    writable: tuple[Path, dict[str, str]], make_key: Callable[[Path, Any], str]
) -> None:
    path, _ = writable
    with TestClient(create_app(settings_for(path), today=lambda: TODAY)) as client:
        assert client.post("/profiles", json=POSTED).status_code == 401
        reader = {"X-API-Key": make_key(path, "read")}
        assert client.post("/profiles", json=POSTED, headers=reader).status_code == 403
        assert client.get("/profiles/help-desk").status_code == 404


CONTRADICTIONS = [
    ({"input_tokens": 100, "output_tokens": 5, "system_prompt_tokens": 100}, "system_prompt_tokens is 100"),
    (
        {
            "input_tokens": 100,
            "output_tokens": 5,
            "system_prompts": [{"tokens": 5, "share": 0.7}, {"tokens": 6, "share": 0.7}],
        },
        "add up to 1.4",
    ),
    ({"input_tokens": 100, "output_tokens": 500, "max_context_tokens": 400}, "max_context_tokens is 400"),
    ({"input_tokens": 100, "output_tokens": 5, "documents": {"count": 5, "tokens": 99_999}}, "100 tokens"),
    ({"input_tokens": 100, "output_tokens": 90, "turns": 9}, "history"),
    ({"input_tokens": 100, "growth_tokens": 9, "output_tokens": 5}, "each say how long an input is"),
    ({"output_tokens": 5}, "input_tokens is missing"),
    ({"histogram": [{"input_tokens": 9, "output_tokens": 9, "share": 0.5}]}, "do not add up to 1"),
    ({"input_tokens": 100, "output_tokens": 5, "hourly_shape": [0] * 24}, "zero all day"),
    ({"input_tokens": 100, "output_tokens": 5, "hourly_shape": [1] * 23}, "hourly_shape"),
    (
        {
            "output_tokens": 5,
            "input_quantiles": [{"share": 0.5, "tokens": 90}, {"share": 0.9, "tokens": 80}],
        },
        "input_quantiles fall",
    ),
]


@pytest.mark.parametrize(("traffic", "said"), CONTRADICTIONS)
def test_a_profile_that_contradicts_itself_is_refused_in_a_sentence(
    client: Client, traffic: dict[str, Any], said: str
) -> None:
    answer = client.post("/quote", json={"model": "llama-3-70b", "gpu": "h100", "profile": traffic})
    assert answer.status_code == 400, answer.text
    assert said in answer.json()["detail"]
