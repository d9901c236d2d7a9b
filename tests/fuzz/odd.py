"""Odd values, and bytes of valid inputs with something changed: what parsers of strangers' bytes have to bear."""

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st

Json: TypeAlias = Any
Change: TypeAlias = tuple[str, float, bytes]

TEXTS: Final = (
    "", " ", "0", "-1", "1", "2", "8192", "0.5", "-0.0", "1e308", "1e999", "nan", "inf", "Infinity", "true", "off",
    "null", "None", "1_000", "0x10", "1,000", "+1", "\u0663", "\uff11", "\u00b2", "9" * 400, "1" * 5000,
    "=1+1", "\x00", "a\nb", "\u202e", "\u2028", "2026-02-30", "0001-01-01", "9999-12-31", "2026-11-29", "1e-400",
    "bf16", "fp8", "int4", "../../etc/passwd", "%s%n", "'; DROP TABLE models; --", "<b>", "x" * 300,
)  # fmt: skip
NUMBERS: Final = (
    0, 1, -1, 2, 3, 7, 64, 127, 128, 4096, 2**31, 2**53 + 1, 2**63, 2**64, 10**15, 10**30, 10**400, 0.5, -0.5,
    1e-320, 1e-9, 1.5, 1e18, 1e308, -0.0,
)  # fmt: skip
BYTES: Final = (
    b"", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"{", b"}", b"[", b"]", b'"', b"'", b",", b";", b":",
    b"\n", b"\r", b"\t", b"\\", b"\\u0000", b"\\ud800", b"-", b"e9", b"NaN", b"Infinity", b"null", b"&a ", b"*a",
    b"!!python/object ", b"<<: ", b"? ", b"| ", b"0", b"9" * 400, b"1e400", b"[" * 3000, b'{"a":' * 3000, b"- " * 1500,
)  # fmt: skip

texts: st.SearchStrategy[str] = st.sampled_from(TEXTS) | st.text(max_size=12)
numbers: st.SearchStrategy[Any] = (
    st.sampled_from(NUMBERS) | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
)
values: st.SearchStrategy[Json] = st.one_of(
    st.none(),
    st.booleans(),
    numbers,
    texts,
    st.sampled_from(([], {}, [[]], [None], {"": 1}, ["a", 1], [0] * 200, {"a": {"b": {"c": []}}})),
    st.lists(numbers, max_size=4),
)
_HOWS: Final = ("cut", "put", "over", "twice", "gone")
_changes: st.SearchStrategy[list[Change]] = st.lists(
    st.tuples(
        st.sampled_from(_HOWS), st.floats(0, 1), st.sampled_from(BYTES) | st.binary(min_size=1, max_size=4)
    ),
    max_size=4,
)


def changed(seeds: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """One of the seeds with up to four changes of its bytes; now and then bytes of no seed."""
    return st.builds(_changed, st.sampled_from(seeds), _changes) | st.binary(max_size=60)


def _changed(seed: bytes, changes: Sequence[Change]) -> bytes:
    for how, where, what in changes:
        at = int(where * len(seed))
        if how == "cut":
            seed = seed[:at]
        elif how == "put":
            seed = seed[:at] + what + seed[at:]
        elif how == "over":
            seed = seed[:at] + what + seed[at + len(what) :]
        elif how == "twice":
            seed = seed[:at] + seed[max(0, at - 40) :]
        else:
            seed = seed[:at] + seed[at + len(what) :]
    return seed


def altered(
    seeds: Sequence[Mapping[str, Json]], *, names: Sequence[str] = ()
) -> st.SearchStrategy[dict[str, Json]]:
    """An object like one of the seeds: up to four of its members, at any depth, replaced, taken away or added."""
    known = tuple(names) or tuple(sorted({name for seed in seeds for name in seed}))
    step = st.tuples(
        st.floats(0, 1),
        st.sampled_from(("set", "set", "drop", "add")),
        st.sampled_from(known) | texts,
        values,
    )
    return st.builds(_altered, st.sampled_from(seeds), st.lists(step, max_size=4))


def _altered(seed: Mapping[str, Json], steps: Sequence[tuple[float, str, str, Json]]) -> dict[str, Json]:
    whole: dict[str, Json] = json.loads(json.dumps(seed))
    for where, how, name, value in steps:
        places = list(_places(whole))
        if how == "add" or not places:
            whole[name] = deepcopy(value)
            continue
        holder, key = places[int(where * (len(places) - 1))]
        if how == "set":
            holder[key] = deepcopy(value)
        else:
            del holder[key]
    return whole


def _places(value: Json) -> Any:
    """Every member of an object and of what it holds, as its holder and its key."""
    if isinstance(value, dict):
        members: Any = list(value.items())
    elif isinstance(value, list):
        members = list(enumerate(value))
    else:
        return
    for key, inner in members:
        yield value, key
        yield from _places(inner)


def as_json(value: Json) -> bytes:
    """JSON as programs write it that care for nothing: infinities and half characters included."""
    return json.dumps(value).encode("utf-8", "surrogatepass")
