"""What a caller gave, read strictly: a name that stands twice is refused, wherever it came from."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError

from costsvc.errors import InvalidRequest, RepeatedParameter, UnknownParameter
from costsvc.ingest.faults import invalid_request, nearest_parameters

# `v` defeats caches, `api_key` says who asks, `onerror` how a failure is shown. None changes an answer.
IGNORED = frozenset({"v", "api_key", "onerror"})
MAX_PARAMETERS = 100
_HALF_CHARACTERS = re.compile(r"\\u[dD][89a-fA-F]")

Filter = TypeVar("Filter", bound=BaseModel)


def from_query(query: str) -> dict[str, str]:
    """The parameters of a query string, less the ignored ones; blanks are kept."""
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=MAX_PARAMETERS)
    except ValueError as error:
        raise InvalidRequest(f"The query has more than {MAX_PARAMETERS} parameters. Send fewer.") from error
    return _each_once([pair for pair in pairs if pair[0] not in IGNORED])


def from_json(body: bytes, *, with_infinity: bool = False) -> dict[str, Any]:
    """The members of a JSON object; `NaN` and `Infinity`, which JSON does not have, are refused unless asked for."""
    try:
        constant = float if with_infinity else _not_json
        text = body.decode("utf-8-sig")
        given = json.loads(text, object_pairs_hook=_each_once, parse_constant=constant)
        if _HALF_CHARACTERS.search(text):
            # Half of a character can be written in JSON, but never sent back.
            json.dumps(given, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"The body is not valid JSON: {error}.") from error
    if not isinstance(given, dict):
        raise InvalidRequest("The body is valid JSON but not an object. Send an object of named parameters.")
    return given


def parse_filter(kind: type[Filter], given: Mapping[str, Any]) -> Filter:
    """Read the filters of a listing.

    Raises
    ------
    UnknownParameter
        A name that `kind` does not have.
    InvalidRequest
        A value that its field refuses.
    """
    refuse_unknown(given, tuple(kind.model_fields))
    try:
        return kind.model_validate(dict(given))
    except ValidationError as error:
        raise invalid_request(error, kind) from error


def refuse_unknown(given: Mapping[str, str], known: Sequence[str]) -> None:
    """Raise at the first name that is not known."""
    for name in given:
        if name not in known:
            raise UnknownParameter(name, nearest_parameters(name, known), known or ("none",))


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for name, value in pairs:
        if name in given:
            raise RepeatedParameter(name)
        given[name] = value
    return given


def _not_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number of JSON")
