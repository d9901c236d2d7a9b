"""Recorded request traces, streamed: each malformed line is named by its number, and nothing half is kept.

Three forms, told apart by the first line: JSON lines with `hash_ids` (as Mooncake publishes them, a hash for
each block of the prompt), CSV with `TIMESTAMP, ContextTokens, GeneratedTokens` (as Azure publishes them), and
CSV with `timestamp, prompt_tokens, cached_tokens, completion_tokens` (what gateways of OpenAI-compatible
services log for each request).
"""

import csv
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import Annotated, Final, Literal, NoReturn, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from costsvc.engine.trace import Requests
from costsvc.engine.units import MS_PER_S
from costsvc.errors import InvalidRequest

TraceForm: TypeAlias = Literal["mooncake", "azure", "gateway"]
Integers: TypeAlias = NDArray[np.int64]
Rows: TypeAlias = Sequence[tuple[int, bytes]]

LONGEST_LINE_BYTES: Final = 16_000_000
LONGEST_PROMPT_TOKENS: Final = 100_000_000
# Lines are read together up to so many bytes: large enough for array speed, small enough to show progress.
_CHUNK_BYTES: Final = 2_000_000
_CHUNK_LINES: Final = 20_000
_HASH_LIMIT: Final = 2**63 - 1
_LATEST_S: Final = 1e11

_AZURE: Final = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
_GATEWAY: Final = ("timestamp", "prompt_tokens", "cached_tokens", "completion_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class TracePart:
    """Consecutive requests. Times only grow; the first of a trace may be any.

    `requests` holds the blocks of prompts where the form has them, `cached_tokens` what a gateway saw hit.
    [s], [token]
    """

    timestamp_s: NDArray[np.float64]
    input_tokens: Integers
    output_tokens: Integers
    requests: Requests | None = None
    cached_tokens: Integers | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace being read: its form, and its parts as they come."""

    form: TraceForm
    parts: Iterator[TracePart]


def read_trace(lines: Iterable[bytes], *, block_tokens: int) -> Trace:
    """Read a trace from its lines.

    Parameters
    ----------
    block_tokens : int
        Prompt tokens that one hash id stands for. [token]

    Raises
    ------
    InvalidRequest
        Here where the first line is of no known form; while the parts are read at the first bad line, which
        `details["line"]` names.
    """
    numbered = _numbered(lines)
    first = next(numbered, None)
    if first is None:
        raise InvalidRequest("The trace is empty. Its first line must be a request or name the columns.")
    form, read = _form_of(first[1], block_tokens)
    rows = chain([first], numbered) if form == "mooncake" else numbered
    return Trace(form, _parts(rows, read))


def limited(chunks: Iterable[bytes], most_bytes: int) -> Iterator[bytes]:
    """Pass chunks on until they are more than is allowed.

    Raises
    ------
    InvalidRequest
        At the first byte too many.
    """
    left = most_bytes
    for chunk in chunks:
        left -= len(chunk)
        if left < 0:
            raise InvalidRequest(
                f"The trace is longer than {most_bytes:,} bytes. Send a part of it, or count it whole with "
                f"`costsvc trace FILE`."
            )
        yield chunk


class _Line(msgspec.Struct, gc=False):
    """A line of JSON; other members are ignored."""

    timestamp: Annotated[float, msgspec.Meta(ge=0, le=_LATEST_S * MS_PER_S)]
    input_length: Annotated[int, msgspec.Meta(ge=1, le=LONGEST_PROMPT_TOKENS)]
    output_length: Annotated[int, msgspec.Meta(ge=0, le=LONGEST_PROMPT_TOKENS)]
    hash_ids: list[Annotated[int, msgspec.Meta(ge=0, le=_HASH_LIMIT)]]


_LINES: Final = msgspec.json.Decoder(_Line)


def _form_of(line: bytes, block_tokens: int) -> tuple[TraceForm, Callable[[Rows], TracePart]]:
    if line.lstrip().startswith(b"{"):
        return "mooncake", partial(_mooncake, block_tokens=block_tokens)
    names = tuple(name.strip() for name in line.decode("utf-8", "replace").split(","))
    forms: Mapping[TraceForm, tuple[str, ...]] = {"azure": _AZURE, "gateway": _GATEWAY}
    for form, columns in forms.items():
        if set(columns) <= set(names):
            return form, partial(_table, columns=columns, header=names)
    raise InvalidRequest(
        f"Line 1 is neither a JSON object nor the header of a known table ({', '.join(_AZURE)} or "
        f"{', '.join(_GATEWAY)}). It begins with {line[:60]!r}.",
        details={"line": 1},
    )


def _numbered(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Lines that hold something, with their numbers from 1."""
    for number, line in enumerate(lines, start=1):
        if len(line) > LONGEST_LINE_BYTES:
            _refuse(number, f"is longer than {LONGEST_LINE_BYTES:,} bytes")
        text = line.removeprefix(b"\xef\xbb\xbf").strip() if number == 1 else line.strip()
        if text:
            yield number, text


def _parts(rows: Iterator[tuple[int, bytes]], read: Callable[[Rows], TracePart]) -> Iterator[TracePart]:
    """Parts of bounded size; time may not go backwards within one or from one to the next."""
    latest_s = -math.inf
    for chunk in _chunks(rows):
        part = read(chunk)
        earlier = np.flatnonzero(np.diff(part.timestamp_s, prepend=latest_s) < 0)
        if len(earlier):
            number, _ = chunk[int(earlier[0])]
            _refuse(number, "is earlier than the line before it; sort the trace by time")
        latest_s = float(part.timestamp_s[-1])
        yield part


def _chunks(rows: Iterator[tuple[int, bytes]]) -> Iterator[Rows]:
    held: list[tuple[int, bytes]] = []
    size = 0
    for row in rows:
        held.append(row)
        size += len(row[1])
        if size >= _CHUNK_BYTES or len(held) >= _CHUNK_LINES:
            yield held
            held, size = [], 0
    if held:
        yield held


def _mooncake(rows: Rows, *, block_tokens: int) -> TracePart:
    try:
        lines = _LINES.decode_lines(b"\n".join(text for _, text in rows))
    except (msgspec.MsgspecError, RecursionError):
        lines = [_decoded(number, text) for number, text in rows]
    if len(lines) != len(rows):
        lines = [_decoded(number, text) for number, text in rows]
    counts = np.asarray([len(line.hash_ids) for line in lines], dtype=np.int64)
    inputs = np.asarray([line.input_length for line in lines], dtype=np.int64)
    wrong = np.flatnonzero(counts != -(-inputs // block_tokens))
    if len(wrong):
        at = int(wrong[0])
        _refuse(
            rows[at][0],
            f"has {counts[at]} hash_ids, but {inputs[at]} tokens are {-(-inputs[at] // block_tokens)} blocks "
            f"of {block_tokens}; give the block size of the trace",
        )
    ids = chain.from_iterable(line.hash_ids for line in lines)
    return TracePart(
        timestamp_s=np.asarray([line.timestamp for line in lines], dtype=np.float64) / MS_PER_S,
        input_tokens=inputs,
        output_tokens=np.asarray([line.output_length for line in lines], dtype=np.int64),
        requests=Requests(np.fromiter(ids, np.int64, int(counts.sum())), counts, inputs),
    )


def _decoded(number: int, text: bytes) -> _Line:
    try:
        return _LINES.decode(text)
    except msgspec.ValidationError as error:
        complaint, _, place = str(error).partition(" - at `$.")
        field = f" in {place.rstrip('`')}" if place else ""
        _refuse(number, f"is no request of a trace: {complaint}{field}")
    except msgspec.DecodeError as error:
        _refuse(number, f"is not JSON: {error}")
    except RecursionError:
        _refuse(number, "is nested too deeply to be a request of a trace")


def _table(rows: Rows, *, columns: Sequence[str], header: Sequence[str]) -> TracePart:
    if twice := [name for name in columns if header.count(name) > 1]:
        _refuse(1, f"names the column '{twice[0]}' more than once")
    places = [header.index(column) for column in columns]
    cells = [_cells(number, text, places, len(header)) for number, text in rows]
    times = [_instant_s(number, one[0], columns[0]) for (number, _), one in zip(rows, cells, strict=True)]
    tokens = [
        [
            _tokens(number, text, name, least=1 if name in (_AZURE[1], _GATEWAY[1]) else 0)
            for text, name in zip(one[1:], columns[1:], strict=True)
        ]
        for (number, _), one in zip(rows, cells, strict=True)
    ]
    table = np.asarray(tokens, dtype=np.int64).T
    if columns == _AZURE:
        return TracePart(timestamp_s=np.asarray(times), input_tokens=table[0], output_tokens=table[1])
    for (number, _), (prompt, cached, _) in zip(rows, tokens, strict=True):
        if cached > prompt:
            _refuse(number, f"has {cached} cached_tokens of only {prompt} prompt_tokens")
    return TracePart(
        timestamp_s=np.asarray(times), input_tokens=table[0], output_tokens=table[2], cached_tokens=table[1]
    )


def _cells(number: int, text: bytes, places: Sequence[int], width: int) -> list[str]:
    try:
        row = next(csv.reader([text.decode("utf-8")], strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        _refuse(number, f"is not CSV in UTF-8: {error}")
    if len(row) != width:
        _refuse(number, f"has {len(row)} cells, but the header names {width} columns")
    return [row[place].strip() for place in places]


def _instant_s(number: int, text: str, name: str) -> float:
    """A moment as seconds: a number of them, or a date and time (UTC where no zone is named)."""
    try:
        seconds = float(text)
    except ValueError:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            _refuse(number, f"has '{text[:40]}' as {name}, which is neither seconds nor a date and time")
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if not 0 <= seconds <= _LATEST_S:
        _refuse(number, f"has '{text[:40]}' as {name}, which is no moment of a trace")
    return seconds


def _tokens(number: int, text: str, name: str, *, least: int) -> int:
    if not (text.isascii() and text.isdigit()):
        _refuse(number, f"has '{text[:40]}' as {name}, which is not a whole number of tokens")
    if not least <= (tokens := int(text[:20])) <= LONGEST_PROMPT_TOKENS:
        _refuse(number, f"has {text[:20]} as {name}; it must be from {least} to {LONGEST_PROMPT_TOKENS:,}")
    return tokens


def _refuse(number: int, complaint: str) -> NoReturn:
    raise InvalidRequest(f"Line {number} {complaint}.", details={"line": number})
