"""Traces over HTTP: counted, fitted, never kept."""

import json

import pytest

from tests.api.conftest import Client

LINES = "\n".join(
    json.dumps({"timestamp": 1000 * n, "input_length": 1024, "output_length": 9, "hash_ids": [0, n % 3]})
    for n in range(60)
)
JSON_LINES = {"Content-Type": "application/x-ndjson"}


def test_a_trace_gives_its_hit_rates_and_a_profile_that_can_be_quoted(client: Client) -> None:
    answer = client.post("/traces?capacity_blocks=1,inf", content=LINES, headers=JSON_LINES)
    assert answer.status_code == 200, answer.text
    counted = answer.json()
    assert (counted["form"], counted["requests"]) == ("mooncake", 60)
    assert [row["capacity_blocks"] for row in counted["hits"]] == [1, "inf"]
    # Of 120 blocks the first use of each of the four misses, and the first request's two.
    assert counted["hits"][-1]["hit_blocks_share"] == pytest.approx(116 / 120, abs=1e-6)
    assert counted["profile"]["system_prompt_tokens"] == 512
    body = {"model": "llama-3-70b", "gpu": "h100", "profile": counted["profile"]}
    assert client.post("/quote", json=body).status_code == 200


def test_a_table_without_prefixes_gives_lengths_and_says_what_it_lacks(client: Client) -> None:
    table = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,4,5\n2023-11-16 18:17:04,8,5\n"
    counted = client.post("/traces", content=table, headers={"Content-Type": "text/csv"}).json()
    assert counted["hits"] == [{"capacity_blocks": "inf", "hit_blocks_share": None, "hit_tokens_share": None}]
    assert "no prefixes" in counted["note"]
    assert counted["profile"]["rps"] == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (LINES + "\n{", "Line 61 is not JSON"),
        ("", "empty"),
        ("a,b\n1,2", "Line 1"),
        (LINES.replace('"hash_ids": [0, 1]', '"hash_ids": [0]', 1), "Line 2 has 1 hash_ids"),
        (LINES.replace('"timestamp": 30000', '"timestamp": 3', 1), "Line 31 is earlier"),
        (LINES.partition("\n")[0], "at least two requests"),
    ],
)
def test_a_bad_trace_is_refused_at_its_line(client: Client, content: str, said: str) -> None:
    answer = client.post("/traces", content=content, headers=JSON_LINES)
    assert answer.status_code == 400
    assert said in answer.json()["detail"]


@pytest.mark.parametrize(
    ("lengths", "longest"),
    [([(1, 0), (1, 0)], 2), ([(9, 0), (4000, 1), (1, 4000)], 4001)],
    ids=["nothing answered", "long prompts with short answers"],
)
def test_a_profile_holds_the_longest_request_and_one_token_of_output(
    client: Client, lengths: list[tuple[int, int]], longest: int
) -> None:
    rows = "".join(f"{second},{prompt},{output}\n" for second, (prompt, output) in enumerate(lengths))
    table = f"TIMESTAMP,ContextTokens,GeneratedTokens\n{rows}"
    answer = client.post("/traces", content=table, headers={"Content-Type": "text/csv"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["profile"]["max_context_tokens"] == longest


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("0,100000000,5\n1,100000000,5\n", "max_context_tokens"),
        ("0,5,5\n0.0000000001,5,5\n", "rps"),
    ],
    ids=["too long together", "too fast"],
)
def test_a_trace_beyond_the_bounds_of_a_profile_says_which(client: Client, rows: str, said: str) -> None:
    table = f"TIMESTAMP,ContextTokens,GeneratedTokens\n{rows}"
    answer = client.post("/traces", content=table, headers={"Content-Type": "text/csv"})
    assert answer.status_code == 400
    assert "makes no profile" in answer.json()["detail"]
    assert said in answer.json()["detail"]


def test_what_is_no_trace_by_its_type_is_not_read(client: Client) -> None:
    assert client.post("/traces", content="x", headers={"Content-Type": "image/png"}).status_code == 415
    assert client.post("/traces?blok=1", content=LINES, headers=JSON_LINES).status_code == 400
    assert client.post("/traces?capacity_blocks=x", content=LINES, headers=JSON_LINES).status_code == 400


def test_a_trace_may_be_longer_than_other_bodies(client: Client) -> None:
    line = json.dumps(
        {"timestamp": 1, "input_length": 51200, "output_length": 1, "hash_ids": list(range(100))}
    )
    content = "\n".join([line] * 3000 + [line.replace('"timestamp": 1,', '"timestamp": 9,')])
    assert len(content) > 1_000_000
    answer = client.post("/traces?capacity_blocks=100", content=content, headers=JSON_LINES)
    assert answer.status_code == 200, answer.text[:300]
    assert answer.json()["hits"][0]["hit_blocks_share"] == pytest.approx(3000 / 3001, abs=1e-6)
