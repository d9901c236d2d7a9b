"""Comparisons over HTTP: parameters, bodies, formats of errors, validators."""

from typing import Any

import pytest

from tests.api.conftest import Client

WORKLOAD = "model=llama-3-70b&gpu=h100&ctx=8192"


@pytest.mark.parametrize(
    ("url", "key"),
    [
        (f"/compare?{WORKLOAD}", "items"),
        (f"/frontier?{WORKLOAD}", "front"),
        (f"/curve?{WORKLOAD}&points=3", "cliffs"),
        (f"/what-if?{WORKLOAD}", "items"),
        (f"/launch-check?{WORKLOAD}&users=100", "levers"),
    ],
)
def test_each_call_answers_and_is_revalidated(client: Client, url: str, key: str) -> None:
    response = client.get(url)
    assert response.status_code == 200, response.text
    assert response.json()[key]
    assert response.json()["catalog_revision"] == int(response.headers["X-Catalog-Revision"])
    again = client.get(url, headers={"If-None-Match": response.headers["ETag"]})
    assert again.status_code == 304


def test_a_body_and_a_query_get_the_same_check(client: Client) -> None:
    body = {"model": "llama-3-70b", "gpu": "h100", "ctx": 8192, "users": 100}
    posted = client.post("/launch-check", json=body)
    assert posted.status_code == 200, posted.text
    assert posted.json() == client.get(f"/launch-check?{WORKLOAD}&users=100").json()


def test_a_full_profile_is_checked(client: Client) -> None:
    profile = {"input_tokens": 6000, "output_tokens": 400, "input_cv": 0.8, "max_context_tokens": 8192}
    body = {"model": "llama-3-70b", "gpu": "h100", "profile": profile, "rps": 5}
    answer: Any = client.post("/launch-check", json=body).json()
    latency = answer["with_feature"]["latency"]
    assert latency["ttft_ms_p95"] > 1.5 * latency["ttft_ms_p50"]


@pytest.mark.parametrize(
    ("url", "status", "words"),
    [
        (f"/launch-check?{WORKLOAD}", 400, "users or rps"),
        (f"/launch-check?{WORKLOAD}&user=5", 400, "users"),
        (f"/compare?{WORKLOAD}&gpu=h200", 400, "gpu"),
        ("/compare?model=llama-3-70b&gpu=h101&ctx=8192", 404, "h100"),
        (f"/frontier?{WORKLOAD}&gpus=1", 422, "GB"),
        (f"/curve?{WORKLOAD}&from_ctx=9000", 400, "from_ctx"),
        ("/curve?model=llama-3-70b&gpu=h100&ctx=90000", 422, "8,192"),
        (f"/what-if?{WORKLOAD}&groups=7", 400, "64 query heads"),
    ],
)
def test_what_makes_no_sense_gets_its_sentence(client: Client, url: str, status: int, words: str) -> None:
    response = client.get(url)
    assert response.status_code == status, response.text
    assert response.headers["Content-Type"] == "application/problem+json"
    assert words in response.json()["detail"]
