"""Readers of strangers' bytes, each with inputs for it. A reader answers, or refuses with a `CostsvcError`."""

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from hypothesis import strategies as st

from costsvc.engine.parameters import parameter_count
from costsvc.errors import CostsvcError
from costsvc.ingest.hugging_face.given import ImportedConfig
from costsvc.ingest.hugging_face.importing import import_config
from costsvc.quoting.batch import priced, rows_of_csv, rows_of_json, rows_of_xlsx
from costsvc.quoting.given import from_json, from_query
from costsvc.quoting.importing import import_answer, named_in_catalog, with_model
from costsvc.quoting.posting import PostedOffer, PostedPrices, parse_body, with_offer, with_prices
from costsvc.quoting.profiles import PostedProfile, with_profile
from costsvc.quoting.quote import make_quote
from costsvc.quoting.request import PARAMETERS, parse_request
from costsvc.quoting.traces import capacities_of, whole_trace
from tests.engine.shapes import TODAY, shipped
from tests.fuzz import files, seeds, workbooks
from tests.fuzz.odd import altered, as_json, changed, texts
from tests.fuzz.sound import is_sound, is_sound_quote


@dataclass(frozen=True, slots=True)
class Target:
    """A reader by name; `share` is its part of all inputs."""

    name: str
    inputs: Callable[[], st.SearchStrategy[Any]]
    read: Callable[[Any], None]
    share: float


def refuses(target: Target, given: Any) -> bool:
    """Whether the reader refuses an input; anything but an answer or a `CostsvcError` passes through."""
    try:
        target.read(given)
    except CostsvcError as error:
        said = error.message
        assert said.strip(), "a refusal without words"
        said.encode()
        json.dumps(error.details, allow_nan=False, default=str)
        return True
    return False


def warm() -> None:
    """Read valid inputs once, so that no odd one waits for the compiler."""
    for text in seeds.QUERIES:
        _query(text)
    for body in seeds.BODIES:
        _quote_of(body)
    _rows([{"model": "llama-3.1-8b", "gpu": "h100", "ctx": ctx} for ctx in (4096, 8192)])


def _trace(given: tuple[bytes, int, str | None]) -> None:
    body, block_tokens, capacities = given
    lines = io.BytesIO(body)
    is_sound(
        whole_trace(
            iter(lines.readline, b""), block_tokens=block_tokens, capacities=capacities_of(capacities)
        )
    )


def _config(body: bytes) -> None:
    from_json(body, with_infinity=True)
    posted = parse_body(ImportedConfig, body)
    imported = named_in_catalog(shipped(), import_config(posted, TODAY))
    with_model(shipped(), imported)
    assert parameter_count(imported.file.spec()) > 0
    is_sound(import_answer(imported, written=False, revision=1))


def _rows(rows: list[Mapping[str, Any]]) -> None:
    for row in priced(shipped(), rows[:3], TODAY):
        assert not str(row.get("error") or "").startswith("Internal error"), row
        is_sound(row)


def _profile(body: bytes) -> None:
    from_json(body)
    posted = parse_body(PostedProfile, body)
    with_profile(shipped(), posted)
    given = {"model": "llama-3.1-8b", "gpu": "h100", "profile": posted.traffic.model_dump(exclude_unset=True)}
    is_sound_quote(make_quote(shipped(), parse_request(given), TODAY))


def _offer(body: bytes) -> None:
    from_json(body)
    with_offer(shipped(), parse_body(PostedOffer, body))


def _prices(body: bytes) -> None:
    from_json(body)
    with_prices(shipped(), _an_offer(), parse_body(PostedPrices, body))


@cache
def _an_offer() -> str:
    return shipped().content.offers[0].id


def _quote_of(given: Mapping[str, Any]) -> None:
    is_sound_quote(make_quote(shipped(), parse_request(given), TODAY))


def _quote_body(body: bytes) -> None:
    _quote_of(from_json(body))


def _query(text: str) -> None:
    _quote_of(from_query(text))


def _queries() -> st.SearchStrategy[str]:
    pair = st.tuples(st.sampled_from(PARAMETERS) | texts, texts).map("=".join)
    like = st.sampled_from(seeds.QUERIES)
    near = st.tuples(like, st.lists(pair, max_size=3)).map(lambda parts: "&".join((parts[0], *parts[1])))
    return near | changed([one.encode() for one in seeds.QUERIES]).map(lambda raw: raw.decode("latin-1"))


def _traces() -> st.SearchStrategy[tuple[bytes, int, str | None]]:
    lines = st.lists(altered(seeds.TRACE_LINES).map(as_json), min_size=2, max_size=6).map(b"\n".join)
    block = st.sampled_from((512, 512, 1, 16, 1_000_000))
    capacities = st.none() | st.sampled_from(("1,inf", "100")) | texts
    return st.tuples(changed(seeds.TRACES) | lines, block, capacities) | seeds.recorded()


def _configs() -> st.SearchStrategy[bytes]:
    def posted(config: Any) -> bytes:
        return as_json({"config": config, "hf_id": "example-org/Example-8B"})

    plain = altered(seeds.configs()).map(posted)
    whole = altered([{"config": one, **seeds.GIVEN} for one in seeds.configs()[:20]]).map(as_json)
    return plain | whole | changed([posted(one) for one in seeds.configs()])


def _csv() -> st.SearchStrategy[bytes]:
    cell = st.sampled_from(seeds.CELLS) | texts
    table = st.lists(st.lists(cell, min_size=1, max_size=6), min_size=1, max_size=2)
    header = st.lists(st.sampled_from(PARAMETERS), min_size=1, max_size=6, unique=True)
    return changed(seeds.CSVS) | st.builds(lambda first, rows: _written([first, *rows]), header, table)


def _written(rows: list[list[str]]) -> bytes:
    held = io.StringIO()
    csv.writer(held).writerows(rows)
    return held.getvalue().encode("utf-8", "surrogatepass")


def _json_rows() -> st.SearchStrategy[bytes]:
    return altered([{"rows": list(seeds.BODIES[:2])}], names=("rows", *PARAMETERS)).map(as_json) | changed(
        [as_json({"rows": list(seeds.BODIES[:2])})]
    )


def _bodies() -> st.SearchStrategy[bytes]:
    return altered(seeds.BODIES, names=PARAMETERS).map(as_json) | changed(
        [as_json(one) for one in seeds.BODIES]
    )


def _posted(like: Mapping[str, Any]) -> Callable[[], st.SearchStrategy[bytes]]:
    return lambda: altered([like]).map(as_json) | changed([as_json(like)])


def _all() -> Iterator[Target]:
    yield Target("trace", _traces, _trace, 4)
    yield Target("config.json", _configs, _config, 12)
    yield Target("batch csv", _csv, lambda body: _rows(rows_of_csv(body)), 20)
    yield Target("batch json", _json_rows, lambda body: _rows(rows_of_json(body)), 10)
    yield Target("batch xlsx", workbooks.inputs, lambda body: _rows(rows_of_xlsx(body)), 10)
    yield Target("profile json", lambda: seeds.profiles(altered, changed), _profile, 10)
    yield Target("offer json", _posted(seeds.OFFER), _offer, 8)
    yield Target("prices json", _posted(seeds.PRICES), _prices, 4)
    yield Target("catalog yaml", files.inputs, files.read, 14)
    yield Target("quote query", _queries, _query, 4)
    yield Target("quote json", _bodies, _quote_body, 8)
    yield Target("engine", seeds.requests, _quote_of, 4)


TARGETS: Final = tuple(_all())
