"""`costsvc trace`: a hit-rate curve as CSV."""

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from costsvc.cli import main

CONVERSATION = Path(__file__).parents[2].parent / "shared" / "data" / "traces" / "mooncake_conversation.jsonl"
# The second request begins like the first, whose first block has left a cache of two blocks.
REQUESTS = [(1100, [1, 2, 3]), (1500, [1, 2, 4]), (10, [4])]
LINES = "\n".join(
    json.dumps({"timestamp": n, "input_length": tokens, "output_length": 1, "hash_ids": ids})
    for n, (tokens, ids) in enumerate(REQUESTS)
)


def run(*arguments: str, given: str = LINES) -> Result:
    return CliRunner().invoke(main, ["trace", *arguments], input=given)


def rows(result: Result) -> list[dict[str, str]]:
    assert result.exit_code == 0, result.stderr
    return list(csv.DictReader(io.StringIO(result.stdout)))


def test_each_asked_capacity_has_a_row_in_the_order_asked() -> None:
    found = rows(run("-", "--capacity-blocks", "inf,2,3"))
    assert [row["capacity_blocks"] for row in found] == ["inf", "2", "3"]
    blocks = [float(row["hit_blocks_share"]) for row in found]
    assert blocks == pytest.approx([3 / 7, 1 / 7, 3 / 7])
    tokens = [float(row["hit_tokens_share"]) for row in found]
    assert tokens == pytest.approx([1034 / 2610, 10 / 2610, 1034 / 2610])


def test_without_capacities_the_curve_ends_unbounded() -> None:
    found = rows(run("-"))
    assert list(found[-1]) == ["capacity_blocks", "hit_blocks_share", "hit_tokens_share"]
    assert found[-1]["capacity_blocks"] == "inf"


def test_the_block_size_decides_how_many_ids_a_prompt_has() -> None:
    given = LINES.replace("512", "16")
    result = run("-", "--block", "16", given=given)
    assert result.exit_code == 2
    assert "Line 1 has 3 hash_ids, but 1100 tokens are 69 blocks of 16" in result.stderr


def test_a_gateway_log_shows_what_it_saw_and_says_so() -> None:
    given = "timestamp,prompt_tokens,cached_tokens,completion_tokens\n1,100,50,3\n2,100,0,3\n"
    result = run("-", given=given)
    assert rows(result) == [
        {"capacity_blocks": "", "hit_blocks_share": "", "hit_tokens_share": "0.250000000"}
    ]
    assert "unknown size" in result.stderr


def test_a_trace_without_prefixes_has_unknown_hits_and_says_so() -> None:
    result = run("-", given="TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,4,5\n")
    assert rows(result) == [{"capacity_blocks": "inf", "hit_blocks_share": "", "hit_tokens_share": ""}]
    assert "no prefixes" in result.stderr


@pytest.mark.parametrize("capacities", ["0", "-1", "ten", "1,,2", "1e3"])
def test_a_capacity_that_is_no_number_of_blocks_is_bad_usage(capacities: str) -> None:
    result = run("-", "--capacity-blocks", capacities)
    assert result.exit_code == 2
    assert "whole numbers of blocks" in result.stderr


def test_a_bad_line_late_in_the_trace_leaves_no_row() -> None:
    result = run("-", given=LINES + '\n{"timestamp": 9}')
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Line 4" in result.stderr


def test_a_recorded_trace_gives_the_counted_shares() -> None:
    if not CONVERSATION.is_file():
        pytest.skip("mooncake_conversation.jsonl, a trace that is not part of the project, is not beside it")
    found = rows(run(str(CONVERSATION), "--capacity-blocks", "10000,30000,inf"))
    blocks = [float(row["hit_blocks_share"]) for row in found]
    assert blocks == pytest.approx([0.211165, 0.325709, 0.366412], abs=1e-6)
