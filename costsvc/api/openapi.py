"""What the service says about itself: parameters from the models that read them, responses by name.

Litestar writes `components.schemas` itself and drops what is put there, so shared schemas stand in
`components.responses`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from litestar import HttpMethod
from litestar.openapi.spec import (
    Components,
    OpenAPIMediaType,
    OpenAPIResponse,
    Operation,
    Parameter,
    Reference,
    RequestBody,
    Schema,
    SecurityScheme,
)
from pydantic import BaseModel

from costsvc.api import formats, problems, schemas

JsonSchema = Mapping[str, Any]
# No request but that for the document needs them, so they are made for it.
Parameters: TypeAlias = Callable[[], Sequence[Parameter]]
Body: TypeAlias = Callable[[], RequestBody]

READ: Final = (HttpMethod.GET, HttpMethod.HEAD)

_PROBLEM: Final = "Problem"
# A key may be shown to any call, and one that is not valid opens none.
_READ_PROBLEMS: Final = (400, 401, 404, 405, 406, 429, 500, 503)
_BODY_PROBLEMS: Final = (408, 413, 415)

IGNORED_PARAMETERS: Final = (
    ("v", "Ignored. A new value defeats caches that cannot be told otherwise."),
    ("api_key", "A key, where a header cannot be sent. Never logged."),
    ("onerror", "text: a failure is status 200 and its sentence, after #ERROR, where a cell can show it."),
)
SHOWN_AS: Final = (
    (
        "format",
        "As the suffix of the path, which comes first. Absent: what Accept says, else json.",
    ),
)
SHOWN_FIELD: Final = (
    ("field", "For .txt: the value wanted, such as output, input_low, ttft_ms or concurrency.limit."),
)


class Verbatim(Schema):
    """JSON Schema, passed on as it was written."""

    def __init__(self, document: JsonSchema) -> None:
        super().__init__()
        self.document = document

    def to_schema(self) -> dict[str, Any]:
        """The document itself."""
        return dict(self.document)


def query_parameters(
    model: type[BaseModel],
    *,
    without: Sequence[str] = (),
    also_required: Sequence[str] = (),
    more: Sequence[tuple[str, str]] = (),
) -> Parameters:
    """One query parameter per field, with the field's bounds and words; `more` are of how it is shown."""

    def described() -> list[Parameter]:
        document = model.model_json_schema()
        required = (*document.get("required", ()), *also_required)
        own = [
            Parameter(
                name=name,
                param_in="query",
                description=field["description"],
                required=name in required,
                schema=Verbatim(_of_text(field)),
            )
            for name, field in document["properties"].items()
            if name not in without
        ]
        ignored = [
            Parameter(name=name, param_in="query", description=text, schema=Verbatim({"type": "string"}))
            for name, text in (*more, *IGNORED_PARAMETERS)
        ]
        return [*own, *ignored]

    return described


def body_of(model: type[BaseModel]) -> Body:
    """A JSON body as a model reads it."""

    def described() -> RequestBody:
        document = model.model_json_schema()
        return _required({"application/json": schemas.inlined(document, document.get("$defs", {}))})

    return described


class NoParameters(BaseModel):
    """No parameters of its own."""


def batch_body(media_types: Sequence[str]) -> Body:
    """Rows in one of several formats; those but JSON are described by their columns alone."""
    row = {"type": "object", "description": "Parameters of a quote, and label."}
    rows = {"type": "object", "properties": {"rows": {"type": "array", "items": row}}, "required": ["rows"]}
    other = {"type": "string", "description": "A header of parameter names, and a row per quote."}
    return lambda: _required({name: rows if name.endswith("json") else other for name in media_types})


def text_body(media_types: Sequence[str]) -> Body:
    """Text of one of several types."""
    return lambda: _required({name: {"type": "string"} for name in media_types})


def documented(
    answer: str,
    *,
    parameters: Parameters = tuple,
    body: Body | None = None,
    more_problems: Sequence[int] = (),
    success: int = 200,
    also: int | None = None,
) -> type[Operation]:
    """An operation that answers with `components.responses[answer]` and refuses with problems.

    `also` is another status of the same answer.
    """
    statuses = sorted({*_READ_PROBLEMS, *(_BODY_PROBLEMS if body else ()), *more_problems})

    @dataclass
    class Documented(Operation):
        def __post_init__(self) -> None:
            self.parameters = [*_path_parameters(self.parameters), *parameters()] or None
            self.request_body = body() if body else None
            self.security = [{"key": []}] if 401 in more_problems else [{}, {"key": []}]
            self.responses = {
                **{
                    str(status): Reference(f"#/components/responses/{answer}")
                    for status in (success, also)
                    if status is not None
                },
                **({} if body else {"304": OpenAPIResponse("If-None-Match names the current ETag.")}),
                **{str(status): Reference(f"#/components/responses/{_PROBLEM}") for status in statuses},
            }

    return Documented


def components() -> Components:
    """Every response by name, and how a key is shown."""
    answers = {name: _json_response(text, schema) for name, (text, schema) in schemas.answers().items()}
    problem = OpenAPIResponse(
        "A problem (RFC 9457). `type` is a page about this kind of problem.",
        content={problems.MEDIA_TYPE: OpenAPIMediaType(schema=Verbatim(schemas.PROBLEM))},
    )
    key = SecurityScheme(
        type="apiKey", name="X-API-Key", security_scheme_in="header", description="A key of this service."
    )
    return Components(responses={_PROBLEM: problem, **answers}, security_schemes={"key": key})


def _required(content: Mapping[str, JsonSchema]) -> RequestBody:
    """A body by media type."""
    described = {name: OpenAPIMediaType(schema=Verbatim(schema)) for name, schema in content.items()}
    return RequestBody(required=True, content=described)


def _json_response(text: str, schema: JsonSchema) -> OpenAPIResponse:
    content = {"application/json": OpenAPIMediaType(schema=Verbatim(schema))}
    for other in formats.FORMATS.values():
        content.setdefault(other.media_type, OpenAPIMediaType(schema=Verbatim({"type": "string"})))
    return OpenAPIResponse(text, content=content)


def _path_parameters(parameters: Sequence[Parameter | Reference] | None) -> list[Parameter | Reference]:
    return [one for one in parameters or () if isinstance(one, Parameter) and one.param_in == "path"]


def _of_text(described: Mapping[str, Any]) -> JsonSchema:
    """A field's schema as one text of a query can carry it: no null, and the first spelling of a number."""
    alternatives = described.get("anyOf", [described])
    chosen = next(one for one in alternatives if one.get("type") != "null")
    kept = {name: value for name, value in chosen.items() if name not in ("title", "description")}
    default = described.get("default")
    return kept if default is None else {**kept, "default": default}
