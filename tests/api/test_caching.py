"""Who has the answer already is told so, and the answer says for whom it may be kept."""

from datetime import date
from pathlib import Path

import pytest
from litestar.testing import TestClient

from costsvc.app import create_app
from tests.api.conftest import TODAY, Client, settings_for

QUOTE = "/quote?model=llama-3-70b&gpu=h100&ctx=8192"


def etag(client: Client, url: str) -> str:
    return str(client.get(url).headers["ETag"])


@pytest.mark.parametrize(
    "url",
    [QUOTE, "/models", "/gpus", "/gpus/h100", "/prices?gpu=h100&sort=region", "/api-prices", "/fx-rates.csv"],
)
def test_who_has_the_answer_gets_304_without_a_body(client: Client, url: str) -> None:
    tag = etag(client, url)
    assert tag.startswith('W/"')
    again = client.get(url, headers={"If-None-Match": f'"other", {tag}'})
    assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", tag)


def test_who_has_another_answer_gets_this_one(client: Client) -> None:
    response = client.get(QUOTE, headers={"If-None-Match": etag(client, f"{QUOTE}&output=100")})
    assert response.status_code == 200


def test_the_order_of_parameters_and_a_cache_defeater_do_not_change_the_tag(client: Client) -> None:
    assert etag(client, "/quote?ctx=8192&v=7&gpu=h100&model=llama-3-70b") == etag(client, QUOTE)


def test_the_day_is_part_of_the_tag_even_where_the_query_names_none(client: Client, loaded: Path) -> None:
    tomorrow = create_app(settings_for(loaded), today=lambda: date(2026, 11, 30))
    with TestClient(tomorrow) as later:
        assert etag(later, QUOTE) != etag(client, QUOTE)


def test_a_database_made_anew_gives_other_tags_for_the_same_revision(client: Client, small: Path) -> None:
    with TestClient(create_app(settings_for(small), today=lambda: TODAY)) as other:
        first, second = client.get(QUOTE), other.get(QUOTE)
    assert first.headers["X-Catalog-Revision"] == second.headers["X-Catalog-Revision"] == "1"
    assert first.headers["ETag"] != second.headers["ETag"]


@pytest.mark.parametrize(
    ("header", "shown", "query"),
    [("X-API-Key", "{}", ""), ("Authorization", "Bearer {}", ""), ("", "", "&api_key={}")],
)
def test_an_answer_to_a_key_is_kept_for_its_holder_alone(
    client: Client, key: str, header: str, shown: str, query: str
) -> None:
    headers = {header: shown.format(key)} if header else {}
    response = client.get(QUOTE + query.format(key), headers=headers)
    assert response.headers["Cache-Control"] == "private, max-age=300"
    assert response.headers["Vary"] == "Accept, Authorization, X-API-Key"


def test_an_answer_to_nobody_in_particular_is_kept_by_anybody(client: Client) -> None:
    response = client.get(QUOTE)
    assert response.headers["Cache-Control"] == "public, max-age=300"
    assert response.headers["Vary"] == "Accept, Authorization, X-API-Key"


def test_an_error_is_not_kept(client: Client) -> None:
    assert client.get("/quote").headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("url", [QUOTE, "/models", "/readyz", "/healthz"])
def test_head_answers_like_get_without_the_body(client: Client, url: str) -> None:
    got, head = client.get(url), client.head(url)
    ignored = {"x-request-id", "ratelimit"}
    assert {k: v for k, v in head.headers.items() if k not in ignored} == {
        k: v for k, v in got.headers.items() if k not in ignored
    }
    assert (head.status_code, head.content) == (200, b"")


@pytest.mark.parametrize("way", ["", "&format=csv", "&format=txt&field=output", "&format=xml"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_an_answer_from_memory_is_the_one_that_was_made(client: Client, way: str, method: str) -> None:
    def asked(words: str, headers: dict[str, str]) -> tuple[int, bytes, dict[str, str]]:
        response = client.request(method, f"{QUOTE}&output=77{way}&v={method}{words}", headers=headers)
        each_its_own = {"x-request-id", "ratelimit"}
        kept = {name: value for name, value in response.headers.items() if name not in each_its_own}
        return response.status_code, response.content, kept

    made = asked("first", {})
    assert made == asked("first", {})
    has_it = {"If-None-Match": made[2]["etag"]}
    unchanged = asked("other", has_it)
    assert unchanged == asked("other", has_it) == asked("first", has_it)
    assert (made[0], unchanged[:2]) == (200, (304, b""))


def test_an_answer_from_memory_is_in_the_format_that_is_accepted(client: Client) -> None:
    url = f"{QUOTE}&output=78"
    for _ in range(2):
        for accept in ("application/json", "text/csv", "application/xml"):
            assert client.get(url, headers={"Accept": accept}).headers["Content-Type"].startswith(accept)


def test_an_answer_from_memory_is_private_to_who_shows_a_key(client: Client, key: str) -> None:
    kept = [
        client.get(f"{QUOTE}&output=79", headers=headers).headers["Cache-Control"]
        for headers in ({}, {"X-API-Key": key}, {}, {"X-API-Key": key})
    ]
    assert kept == ["public, max-age=300", "private, max-age=300"] * 2


def test_the_revision_of_the_catalog_is_in_a_header(client: Client) -> None:
    response = client.get(QUOTE)
    assert response.headers["X-Catalog-Revision"] == str(response.json()["catalog_revision"])
