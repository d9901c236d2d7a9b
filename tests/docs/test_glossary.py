"""Numbers of the engine end in a suffix of the glossary, or are listed there by name."""

import importlib
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

import costsvc.engine.attention
from tests.docs.pages import text_of


def _section(title: str) -> str:
    return re.split(r"^## ", text_of("docs/glossary.md"), flags=re.MULTILINE)[
        ["Terms", "Units", "Names"].index(title) + 1
    ]


SUFFIXES = tuple(re.findall(r"`(_\w+)`", _section("Units").partition("Answers and files")[0]))
NAMES = frozenset(re.findall(r"`(\w+)`", _section("Names"))) | {"value_bytes"}


# What is computed with; the modules that fit hold vectors of a search, which are no quantities.
QUANTITIES = (
    "layouts",
    "loads",
    "memory",
    "operators",
    "parameters",
    "prefix",
    "pricing",
    "replica",
    "serving",
    "specs",
    "step",
    "trace",
    "uncertainty",
)


def _numeric_fields() -> Iterator[tuple[str, str]]:
    variants = [module.name for module in pkgutil.iter_modules(costsvc.engine.attention.__path__)]
    for module in (*QUANTITIES, *(f"attention.{name}" for name in variants)):
        path = f"costsvc.engine.{module}"
        for name, kind in vars(importlib.import_module(path)).items():
            is_own = isinstance(kind, type) and kind.__module__ == path and not name.startswith("_")
            if is_own and is_dataclass(kind):
                hints = get_type_hints(kind)
                yield from ((name, field.name) for field in fields(kind) if _is_number(hints[field.name]))


def _is_number(annotation: Any) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, (int, float, np.number)):
        return annotation is not bool
    return any(_is_number(part) for part in get_args(annotation) if not isinstance(part, str))


@pytest.mark.parametrize(("kind", "name"), sorted(set(_numeric_fields())))
def test_every_number_of_the_engine_names_its_unit(kind: str, name: str) -> None:
    assert name in NAMES or name.endswith(SUFFIXES)


def test_the_glossary_has_the_terms_that_answers_use() -> None:
    terms = _section("Terms")
    for term in ("TTFT", "TPOT", "prefill", "decode", "KV cache", "TP", "PP", "EP", "MFU", "MBU"):
        assert re.search(rf"^\| .*\b{term}\b.* \|", terms, re.MULTILINE)
