"""Traces are read whole or refused at a numbered line."""

import json
from collections.abc import Iterable

import pytest

from costsvc.errors import InvalidRequest
from costsvc.ingest.traces import LONGEST_LINE_BYTES, TracePart, limited, read_trace

AZURE = b"TIMESTAMP,ContextTokens,GeneratedTokens"
GATEWAY = b"timestamp,prompt_tokens,cached_tokens,completion_tokens"


def line(timestamp: object = 0, tokens: object = 1000, output: object = 5, ids: object = (1, 2)) -> bytes:
    return json.dumps(
        {"timestamp": timestamp, "input_length": tokens, "output_length": output, "hash_ids": ids}
    ).encode()


def read(lines: Iterable[bytes]) -> list[TracePart]:
    return list(read_trace(lines, block_tokens=512).parts)


def refusal(lines: Iterable[bytes]) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        read(lines)
    return caught.value


def test_json_lines_give_blocks_and_lengths() -> None:
    (part,) = read([line(), b"", line(timestamp=1500, tokens=1, ids=[9])])
    assert part.requests is not None
    assert part.requests.blocks.tolist() == [1, 2, 9]
    assert part.requests.counts.tolist() == [2, 1]
    assert part.input_tokens.tolist() == [1000, 1]
    assert part.timestamp_s.tolist() == [0, 1.5]


def test_a_table_gives_lengths_and_no_blocks() -> None:
    (part,) = read([b"\xef\xbb\xbf" + AZURE + b"\r\n", b"2023-11-16 18:17:03.9799600,4808,10\r\n"])
    assert (part.input_tokens.tolist(), part.output_tokens.tolist(), part.requests) == ([4808], [10], None)


def test_a_gateway_log_may_have_other_columns_and_any_clock() -> None:
    trace = read_trace(
        [
            b"model,completion_tokens,timestamp,prompt_tokens,cached_tokens",
            b"a,3,1700000000.5,100,64",
            b'"b, c",4,2023-11-14T23:13:21+01:00,50,0',
        ],
        block_tokens=512,
    )
    (part,) = trace.parts
    assert trace.form == "gateway"
    assert part.cached_tokens is not None
    assert part.cached_tokens.tolist() == [64, 0]
    assert part.output_tokens.tolist() == [3, 4]
    assert part.timestamp_s.tolist() == [1700000000.5, 1700000001.0]


def test_a_long_trace_comes_in_parts_that_together_are_all_of_it() -> None:
    parts = read(line(timestamp=n) for n in range(45_000))
    assert len(parts) > 1
    assert sum(len(part.input_tokens) for part in parts) == 45_000


BAD_LINES = [
    pytest.param(b"{", "is not JSON", id="cut off"),
    pytest.param(b"[1]", "is no request", id="no object"),
    pytest.param(line(ids=[1]), "1 hash_ids, but 1000 tokens are 2 blocks of 512", id="too few ids"),
    pytest.param(line(ids=[1, 2, 3]), "3 hash_ids, but 1000 tokens are 2 blocks", id="too many ids"),
    pytest.param(line(ids=[1, -2]), "hash_ids", id="negative id"),
    pytest.param(line(ids=[1, "2"]), "hash_ids", id="text as id"),
    pytest.param(line(tokens=0, ids=[]), "input_length", id="no prompt"),
    pytest.param(line(tokens=10**12), "input_length", id="gigantic prompt"),
    pytest.param(line(output=10**12), "output_length", id="gigantic output"),
    pytest.param(line(tokens=1000.5), "input_length", id="half a token"),
    pytest.param(line(timestamp=5), "is earlier than the line before it", id="time going backwards"),
    pytest.param(line(timestamp="NaN"), "timestamp", id="no time"),
    pytest.param(line(timestamp=1e300), "timestamp", id="a time out of time"),
    pytest.param(b"\xff\xfe", "is not JSON", id="no text"),
    pytest.param(b'{"a":' * 3000, "is nested too deeply", id="nested"),
    pytest.param(b" " * (LONGEST_LINE_BYTES + 1), "is longer than", id="endless"),
]


@pytest.mark.parametrize(("bad", "said"), BAD_LINES)
def test_a_bad_line_is_named_by_its_number(bad: bytes, said: str) -> None:
    error = refusal([line(timestamp=10), b"", bad, line(timestamp=20)])
    assert error.message.startswith("Line 3 ")
    assert said in error.message
    assert error.details["line"] == 3


BAD_ROWS = [
    pytest.param(AZURE, b"2023-11-16 18:17:03,48", "has 2 cells", id="short"),
    pytest.param(AZURE, b"2023-11-16 18:17:03,-4,5", "'-4' as ContextTokens", id="negative"),
    pytest.param(AZURE, b"2023-11-16 18:17:03,0,5", "ContextTokens", id="no prompt"),
    pytest.param(AZURE, b"2023-11-16 18:17:03,4e3,5", "'4e3' as ContextTokens", id="exponent"),
    pytest.param(AZURE, b"2023-11-16 18:17:03," + b"9" * 50 + b",5", "must be from", id="gigantic"),
    pytest.param(AZURE, b"yesterday,4,5", "'yesterday' as TIMESTAMP", id="no time"),
    pytest.param(AZURE, b"nan,4,5", "'nan' as TIMESTAMP", id="nan"),
    pytest.param(AZURE, b"\xff,4,5", "is not CSV in UTF-8", id="no text"),
    pytest.param(GATEWAY, b"1,100,101,5", "101 cached_tokens of only 100", id="more cached than asked"),
]


@pytest.mark.parametrize(("header", "row", "said"), BAD_ROWS)
def test_a_bad_row_is_named_by_its_number(header: bytes, row: bytes, said: str) -> None:
    error = refusal([header, row])
    assert error.message.startswith("Line 2 ")
    assert said in error.message


def test_time_may_not_go_backwards_between_parts() -> None:
    lines = [line(timestamp=n) for n in range(20_000)]
    assert "Line 20001 is earlier" in refusal([*lines, line(timestamp=5)]).message


@pytest.mark.parametrize("lines", [[], [b"\n", b"  "]])
def test_an_empty_trace_is_refused(lines: list[bytes]) -> None:
    assert "empty" in refusal(lines).message


def test_an_unknown_table_is_shown_the_known_ones() -> None:
    message = refusal([b"when,how much"]).message
    assert "ContextTokens" in message
    assert "cached_tokens" in message


def test_a_column_named_twice_is_refused() -> None:
    assert "more than once" in refusal([GATEWAY + b",timestamp", b"1,2,0,1,1"]).message


def test_an_upload_ends_at_its_limit() -> None:
    assert b"".join(limited([b"ab", b"cd"], 4)) == b"abcd"
    with pytest.raises(InvalidRequest, match="longer than 3 bytes"):
        list(limited([b"ab", b"cd"], 3))
