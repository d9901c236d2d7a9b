"""Pages for people: every route, and what each kind of problem means. They load nothing from elsewhere."""

from collections.abc import Mapping
from html import escape
from typing import Any, Final

from litestar import Request, Response, Router, get
from litestar.exceptions import HTTPException
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin, OpenAPIRenderPlugin
from litestar.openapi.spec import OpenAPI
from litestar.params import FromPath

from costsvc import __version__
from costsvc.api.door import OPEN
from costsvc.api.openapi import components
from costsvc.api.problems import KINDS, Kind

STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; border-top: 1px solid #8886; padding-top: 1rem; font-size: 1.1rem; }
code { font-family: ui-monospace, monospace; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0; }
td { border-top: 1px solid #8883; }
"""


class _Documented(OpenAPIConfig):
    """What its operations refer to is made when the document is first asked for."""

    def to_openapi_schema(self) -> OpenAPI:
        """The document without its paths."""
        self.components = components()
        return super().to_openapi_schema()


class RoutesPage(OpenAPIRenderPlugin):
    """The OpenAPI document as one page that needs no script."""

    def __init__(self) -> None:
        super().__init__(path="/")

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        """The page."""
        operations = [
            _operation(path, method, operation)
            for path, item in sorted(openapi_schema["paths"].items())
            for method, operation in item.items()
            if method in ("get", "post")
        ]
        example = "/quote?model=llama-3-70b&gpu=h100&ctx=8192"
        intro = (
            f'<p>Try <a href="{escape(example)}"><code>{escape(example)}</code></a>. '
            "Reads answer HEAD like GET. "
            'Programs read <a href="/docs/openapi.json">the OpenAPI document</a>. '
            'Errors are problems of these kinds: <a href="/problems">/problems</a>.</p>'
        )
        return _page("What a token costs: the calls", intro + "".join(operations))


@get("/problems", media_type="text/html", sync_to_thread=False, include_in_schema=False)
def get_problems() -> bytes:
    """Every kind of problem."""
    items = "".join(
        f'<li><a href="/problems/{kind.slug}">{escape(kind.title)}</a> ({kind.status})</li>'
        for kind in sorted(KINDS.values(), key=lambda kind: (kind.status, kind.slug))
    )
    return _page("Kinds of problems", f"<ul>{items}</ul>")


@get("/problems/{slug:str}", media_type="text/html", sync_to_thread=False, include_in_schema=False)
def get_problem(slug: FromPath[str]) -> bytes:
    """What one kind of problem means: the page that `type` of a problem names."""
    kind: Kind | None = KINDS.get(slug)
    if kind is None:
        raise HTTPException(status_code=404)
    return _page(
        kind.title,
        f"<p>HTTP status {kind.status}.</p><p>{escape(kind.meaning)}</p>"
        "<p>The problem's <code>detail</code> says what was asked, what is there and what to do next; "
        "<code>errors</code> names the fields.</p>",
    )


def openapi_config() -> OpenAPIConfig:
    """The document at /docs/openapi.json and its page at /docs."""
    return _Documented(
        title="costsvc",
        version=__version__,
        description="What a token of a large language model really costs.",
        render_plugins=[RoutesPage(), JsonRenderPlugin()],
        openapi_router=Router(
            path="/docs",
            route_handlers=[],
            include_in_schema=False,
            after_request=_refuse_unknown_page,
            opt=OPEN,
        ),
    )


def _refuse_unknown_page(response: Response[Any]) -> Response[Any]:
    """The framework answers unknown pages below /docs in HTML; here errors are problems."""
    if response.status_code == 404:
        raise HTTPException(status_code=404)
    return response


def _operation(path: str, method: str, operation: Mapping[str, Any]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(parameter['name'])}</code></td><td>{escape(_bounds(parameter))}</td>"
        f"<td>{escape(parameter.get('description', ''))}</td></tr>"
        for parameter in operation.get("parameters", ())
    )
    table = f"<table><tr><th>name</th><th>value</th><th>meaning</th></tr>{rows}</table>" if rows else ""
    return (
        f"<h2><code>{method.upper()} {escape(path)}</code></h2><p>{escape(operation['summary'])}</p>{table}"
    )


def _bounds(parameter: Mapping[str, Any]) -> str:
    schema = parameter.get("schema", {})
    said = (
        [" | ".join(schema["enum"])] if "enum" in schema else [schema.get("format", schema.get("type", ""))]
    )
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    said += [f"{sign} {schema[name]}" for name, sign in signs.items() if name in schema]
    said += [f"default {schema['default']}"] if "default" in schema else []
    said += ["required"] if parameter.get("required") else []
    return ", ".join(said)


def _page(title: str, body: str) -> bytes:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} · costsvc</title><style>{STYLE}</style></head>"
        f"<body><h1>{escape(title)}</h1>{body}</body></html>"
    ).encode()
