"""The pages say what the code does: names, bounds, answers and examples are compared with it."""

import doctest
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from costsvc import errors
from costsvc.api.problems import KINDS
from costsvc.app import ROUTES
from costsvc.cli import main as command_line
from costsvc.cli.points import CAPACITY, PREDICTED
from costsvc.cli.trace import COLUMNS as HITS
from costsvc.db.snapshot import Catalog
from costsvc.quoting.flat import COLUMNS
from costsvc.quoting.quote import make_quote
from costsvc.quoting.request import QuoteRequest, TrafficProfile, parse_request
from costsvc.settings import Settings
from tests.docs.pages import ROOT, blocks, pages, text_of, without_code
from tests.docs.refresh import DAY, generated, refreshed

API = text_of("docs/api.md")
REFRESH = "python -m tests.docs.refresh writes it anew"

_NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:e-?\d+)?")
# Written by the validation against measured points, which may come after the pages that lead to it.
_LATER = ROOT / "docs" / "accuracy.md"
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
# Pages that are about this machine or that a package came from would be wrong on every other.
_PLACES = re.compile(
    r"(?<![\w.])/(?:home|root|work|tmp|Users|mnt)/|pypi|index-url|site-packages", re.IGNORECASE
)


def _named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", pages(), ids=_named)
def test_what_the_code_writes_is_what_it_would_write_now(page: Path, catalog: Catalog) -> None:
    text = page.read_text(encoding="utf-8")
    now = generated(refreshed(text, catalog)) if generated(text) else {}
    for name, there in generated(text).items():
        assert _NUMBER.split(there) == _NUMBER.split(now[name]), f"{name} is out of date: {REFRESH}"
        said, made = (_numbers(part) for part in (there, now[name]))
        assert said == pytest.approx(made, rel=1e-6), f"{name} is out of date: {REFRESH}"


def _numbers(text: str) -> list[float]:
    return [float(number.replace(",", "")) for number in _NUMBER.findall(text)]


@pytest.mark.parametrize("page", pages(), ids=_named)
def test_examples_answer_what_the_page_says(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    examples = "\n".join(block.text for block in blocks(text) if ">>>" in block.text)
    test = doctest.DocTestParser().get_doctest(examples, {}, _named(page), str(page), 0)
    report: list[str] = []
    failed, _ = doctest.DocTestRunner().run(test, out=report.append)
    assert not failed, "".join(report)


@pytest.mark.parametrize("page", pages(), ids=_named)
def test_every_link_into_the_repository_leads_somewhere(page: Path) -> None:
    for target in _LINK.findall(without_code(page.read_text(encoding="utf-8"))):
        path, _, heading = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        led_to = (page.parent / path).resolve() if path else page
        assert led_to.exists() or led_to == _LATER, f"{_named(page)} links to {target}"
        if heading:
            assert heading in _headings(led_to), f"{_named(page)} links to {target}"


def _headings(page: Path) -> set[str]:
    """The anchors of a page, as hosting sites make them."""
    titles = re.findall(r"^#+ (.*)$", without_code(page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", pages(), ids=_named)
def test_no_page_names_a_place_on_a_machine_or_an_index_of_packages(page: Path) -> None:
    assert not _PLACES.findall(page.read_text(encoding="utf-8"))


def _calls() -> Iterator[str]:
    for handler in ROUTES:
        for path in handler.paths:
            shown = re.sub(r"\{(\w+):\w+\}", r"{\1}", path)
            yield from (f"{method} {shown}" for method in handler.http_methods if method != "HEAD")


@pytest.mark.parametrize("call", sorted({*_calls(), "GET /docs", "GET /docs/openapi.json"}))
def test_every_route_is_described(call: str) -> None:
    assert f"| `{call}` |" in API


@pytest.mark.parametrize("name", sorted({*QuoteRequest.model_fields, *TrafficProfile.model_fields}))
def test_every_parameter_of_a_quote_is_described(name: str) -> None:
    assert f"| `{name}` |" in API


def _tree(kind: type[errors.CostsvcError]) -> list[type[errors.CostsvcError]]:
    return [kind, *(deeper for child in kind.__subclasses__() for deeper in _tree(child))]


@pytest.mark.parametrize(
    "kind", [kind for kind in _tree(errors.CostsvcError) if kind.__module__ == errors.__name__]
)
def test_every_error_is_described(kind: type[errors.CostsvcError]) -> None:
    assert f"`{kind.__name__}`" in API


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.slug)
def test_every_problem_is_described_with_its_status(kind: Any) -> None:
    row = next(line for line in API.splitlines() if line.startswith(f"| `{kind.slug}` |"))
    assert f" {kind.status} " in row


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_is_described(name: str) -> None:
    assert f"`COSTSVC_{name.upper()}`" in text_of("docs/operations.md")


@pytest.mark.parametrize("column", sorted({*PREDICTED, *CAPACITY, *HITS, *COLUMNS}))
def test_every_column_of_the_command_line_is_described(column: str) -> None:
    assert f"`{column}`" in API


@pytest.mark.parametrize("name", command_line.list_commands(None))  # type: ignore[arg-type]
def test_every_command_is_in_the_readme(name: str) -> None:
    assert re.search(rf"`(costsvc )?{name}\b", text_of("README.md"))


_ASKED = (
    {"model": "llama-3-70b", "gpu": "h100", "ctx": 8192, "trace": "on"},
    {"model": "llama-3-8b", "gpu": "h100", "ctx": 8192, "allocation": "contiguous"},
    {
        "model": "deepseek-v3",
        "gpu": "h200",
        "ctx": 8192,
        "mode": "disaggregated",
        "attribution": "pools",
        "rps": 20,
        "prefix_tokens": 2000,
        "turns": 2,
        "currency": "EUR",
        "fx_rate": "0.9",
    },
)


@pytest.mark.parametrize("asked", _ASKED, ids=lambda asked: f"{asked['model']}-{len(asked)}")
def test_every_key_of_an_answer_is_described(catalog: Catalog, asked: Mapping[str, object]) -> None:
    answer = make_quote(catalog, parse_request(asked), DAY)
    keys = {key for name, section in answer.items() for key in _keys(section, free=name == "assumptions")}
    # Amounts in another currency are described once, by those in US dollars.
    in_usd = {key: key.replace("eur_", "usd_").replace("_eur", "_usd") for key in {*keys, *answer}}
    undescribed = [key for key in sorted(in_usd) if not any(f"`{one}`" in API for one in (key, in_usd[key]))]
    assert undescribed == []


def _keys(node: object, *, free: bool) -> Iterator[str]:
    """Names in a section; those of a scope are the catalog's words."""
    if isinstance(node, list):
        for one in node:
            yield from _keys(one, free=free)
    if isinstance(node, dict):
        for name, one in node.items():
            yield name
            if not (free and name == "scope"):
                yield from _keys(one, free=free)


def test_refresh_leaves_a_page_without_generated_parts_alone(catalog: Catalog) -> None:
    assert refreshed("nothing here", catalog) == "nothing here"
