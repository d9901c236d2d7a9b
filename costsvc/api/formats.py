"""The formats there are, by suffix and by media type, and which of them a request asks for.

A spreadsheet recognises a format by the suffix of the path alone, so that comes first, then `format`, then
Accept.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl

from litestar import Request
from litestar.exceptions import HTTPException

from costsvc.api.json_text import to_json
from costsvc.api.sent import accepted
from costsvc.errors import InvalidRequest
from costsvc.quoting.given import from_query
from costsvc.quoting.tables.as_csv import csv_line, to_csv
from costsvc.quoting.tables.as_text import column_of
from costsvc.quoting.tables.as_xml import to_xml, xml_error
from costsvc.quoting.tables.table import Table
from costsvc.quoting.workbooks import error_workbook, to_xlsx

ERROR_MARK: Final = "#ERROR "
_FORMAT, _FIELD = "format", "field"
_ONERROR: Final = ("onerror", "text")
_HTML: Final = "text/html"


@dataclass(frozen=True, slots=True)
class View:
    """How one kind of answer looks beside JSON; what is None it does not have.

    `single` answers are one row, which XML shows as the root, `short` names of some of its columns ahead.
    `value` is one value by name.
    """

    table: Callable[[Any], Table] | None = None
    single: bool = False
    short: Mapping[str, str] = field(default_factory=dict)
    value: Callable[[Any, str | None], str] | None = None


JSON_ALONE: Final = View()


def table_view(table: Callable[[Any], Table]) -> View:
    """That of an answer of many rows, of which `.txt` shows one column."""
    return View(table=table, value=lambda answer, field: column_of(table(answer), field))


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One format: whether a kind of answer has it, how it and an error are written.

    The framework adds the character set to the content types of texts.
    """

    media_type: str
    content_type: str
    has: Callable[[View], bool]
    render: Callable[[Any, View, str | None], bytes]
    error: Callable[[str], bytes]


def _table(answer: Any, view: View) -> Table:
    if view.table is None:
        raise TypeError("this kind of answer is no table")
    return view.table(answer)


def _value(answer: Any, view: View, field: str | None) -> bytes:
    if view.value is None:
        raise TypeError("this kind of answer has no single values")
    return view.value(answer, field).encode()


def _has_table(view: View) -> bool:
    return view.table is not None


# By suffix; of several that Accept allows alike, the first is answered.
FORMATS: Final[Mapping[str, Format]] = {
    "json": Format(
        media_type="application/json",
        content_type="application/json",
        has=lambda view: True,
        render=lambda answer, view, field: to_json(answer),
        error=str.encode,
    ),
    "csv": Format(
        media_type="text/csv",
        content_type="text/csv",
        has=_has_table,
        render=lambda answer, view, field: to_csv(_table(answer, view)),
        error=lambda text: csv_line([text]).encode(),
    ),
    "txt": Format(
        media_type="text/plain",
        content_type="text/plain",
        has=lambda view: view.value is not None,
        render=_value,
        error=str.encode,
    ),
    "xml": Format(
        media_type="application/xml",
        content_type="application/xml; charset=utf-8",
        has=_has_table,
        render=lambda answer, view, field: to_xml(_table(answer, view), single=view.single, short=view.short),
        error=xml_error,
    ),
    "xlsx": Format(
        media_type="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        content_type="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        has=_has_table,
        render=lambda answer, view, field: to_xlsx(_table(answer, view)),
        error=error_workbook,
    ),
}
_PLAIN: Final = FORMATS["txt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Presentation:
    """What a request asks for (`given`, in the words of the query), and how it shall be shown."""

    format: Format
    view: View
    field: str | None
    given: Mapping[str, str]

    def rendered(self, answer: object) -> bytes:
        """The answer in the format that was asked for; what is bytes is in it already."""
        if isinstance(answer, bytes):
            return answer
        return self.format.render(answer, self.view, self.field)


def with_suffixes(path: str, view: View) -> list[str]:
    """The path, and the same with the suffix of each format that this kind of answer has."""
    suffixes = [suffix for suffix, one in FORMATS.items() if one.has(view) and suffix != "json"]
    return [path, *(f"{path}.{suffix}" for suffix in suffixes)]


def presented(request: Request[Any, Any, Any], view: View) -> Presentation:
    """Read how an answer shall be shown.

    Raises
    ------
    InvalidRequest
        A `format` that this kind of answer does not have, or a `field` where no single value is asked for.
    """
    given = from_query(query_of(request))
    named, value = given.pop(_FORMAT, None), given.pop(_FIELD, None)
    has = {suffix: one for suffix, one in FORMATS.items() if one.has(view)}
    if named is not None and named.lower() not in has:
        raise InvalidRequest(f"format is '{named}'; choose one of {', '.join(has)}.", field=_FORMAT)
    suffix = suffix_of(request)
    chosen = has.get(suffix or (named or "").lower()) or _negotiated(accepted(request.scope), has)
    if value is not None and chosen is not _PLAIN:
        raise InvalidRequest("field names the one value of a .txt answer; leave it away here.", field=_FIELD)
    return Presentation(format=chosen, view=view, field=value, given=given)


def negotiate(accept: str | None, view: View = JSON_ALONE) -> Format:
    """Of the formats that an Accept header allows, the first of those it likes best."""
    return _negotiated(accept, {suffix: one for suffix, one in FORMATS.items() if one.has(view)})


def error_as_text(request: Request[Any, Any, Any]) -> Format | None:
    """The format in which an error shall be readable text, or None where it shall be a problem."""
    pairs = dict(parse_qsl(query_of(request), keep_blank_values=True))
    if pairs.get(_ONERROR[0]) != _ONERROR[1]:
        return None
    chosen = FORMATS.get(suffix_of(request) or pairs.get(_FORMAT, "").lower(), _PLAIN)
    return _PLAIN if chosen is FORMATS["json"] else chosen


def query_of(request: Request[Any, Any, Any]) -> str:
    """The query as it came."""
    return bytes(request.scope["query_string"]).decode(errors="replace")


def suffix_of(request: Request[Any, Any, Any]) -> str | None:
    """The suffix of the path, where it is that of a format."""
    suffix = request.scope["path"].rpartition(".")[2]
    return suffix if suffix in FORMATS else None


def _negotiated(accept: str | None, has: Mapping[str, Format]) -> Format:
    first = next(iter(has.values()))
    if not accept or accept == "*/*":
        return first
    ranges = dict(map(_range, accept.split(",")))
    if _HTML in ranges and ranges.get("*/*", 0.0) > 0:
        # A browser: it ranks XML above what it has no word for, but a person reads JSON better.
        return first
    best = max(has.values(), key=lambda one: _quality(ranges, one.media_type))
    if not _quality(ranges, best.media_type) > 0:
        types = ", ".join(one.media_type for one in has.values())
        raise HTTPException(status_code=406, detail=f"Accept is '{accept}'; choose one of {types}, or */*.")
    return best


def _range(text: str) -> tuple[str, float]:
    name, *parameters = (part.strip().lower() for part in text.split(";"))
    quality = next((part[2:] for part in parameters if part.startswith("q=")), "1")
    try:
        return name, float(quality)
    except ValueError:
        return name, 1.0


def _quality(ranges: Mapping[str, float], media_type: str) -> float:
    """The quality of the most specific range that covers a media type."""
    main = media_type.partition("/")[0]
    return next((ranges[name] for name in (media_type, f"{main}/*", "*/*") if name in ranges), 0.0)
