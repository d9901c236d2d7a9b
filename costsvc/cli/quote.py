"""One quote on the command line: every parameter of the service is an option of the same name."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import click
from pydantic.fields import FieldInfo

from costsvc.cli.catalogs import current_catalog
from costsvc.cli.quote_table import print_csv, print_table
from costsvc.errors import RepeatedParameter
from costsvc.quoting.given import from_json
from costsvc.quoting.quote import make_quote
from costsvc.quoting.request import QuoteRequest, parse_request

_ARGUMENTS = ("model", "gpu")
_PROFILE = "profile"
_FORMAT = "output_format"


def _metavar(field: FieldInfo) -> str:
    if get_origin(field.annotation) is Literal:
        return "|".join(get_args(field.annotation))
    return "on|off" if field.annotation is bool else "VALUE"


def _option(name: str, field: FieldInfo) -> click.Option:
    """An option that takes its text as it is: `parse_request` reads it, in the service's words."""
    flag = f"--{name.replace('_', '-')}"
    if field.annotation is bool and field.default is False:
        return click.Option([flag, name], is_flag=True, help=field.description)
    return click.Option([flag, name], multiple=True, metavar=_metavar(field), help=field.description)


def _parameters() -> list[click.Parameter]:
    options = [
        _option(name, field)
        for name, field in QuoteRequest.model_fields.items()
        if name not in (*_ARGUMENTS, _PROFILE)
    ]
    return [
        click.Argument(["model"]),
        click.Argument(["gpu"]),
        *options,
        click.Option(
            [f"--{_PROFILE}", _PROFILE],
            metavar="ID|FILE",
            help="A profile of the catalog or a JSON file with one (- for standard input), in place of --ctx "
            "and --output.",
        ),
        click.Option(
            ["--format", _FORMAT],
            type=click.Choice(["table", "json", "csv"]),
            default="table",
            show_default=True,
            help="How the quote is printed.",
        ),
    ]


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """What was said, as the service would get it."""
    given: dict[str, Any] = {}
    for name, value in options.items():
        if not value:
            continue
        if isinstance(value, tuple):
            if len(value) > 1:
                raise RepeatedParameter(name)
            given[name] = value[0]
        elif name == _PROFILE:
            given[name] = _profile(value)
        else:
            given[name] = value
    return given


def _profile(text: str) -> Any:
    """The object in a file; a text that is no file is an id, and the catalog says so if it is none."""
    if text == "-" or Path(text).is_file():
        with click.open_file(text, "rb") as file:
            return from_json(file.read())
    return text


def _quote(**options: Any) -> None:
    output_format = options.pop(_FORMAT)
    wanted = parse_request(_given(options))
    answer = make_quote(current_catalog(), wanted, datetime.now(UTC).date())
    if output_format == "json":
        json.dump(answer, sys.stdout, indent=2, ensure_ascii=False, allow_nan=False)
        click.echo()
    elif output_format == "csv":
        print_csv(answer)
    else:
        print_table(answer)


quote = click.Command(
    name="quote",
    params=_parameters(),
    callback=_quote,
    help="Price one model on one GPU: what input, cached input and output tokens cost.\n\n"
    "MODEL and GPU are ids or aliases, such as llama-3-70b and h100.",
    short_help="Price one model on one GPU.",
)
