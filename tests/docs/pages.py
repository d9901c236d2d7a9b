"""The pages of the documentation, and the code blocks in them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of code; `line` is that of its first line, from 1."""

    language: str
    text: str
    line: int


def pages() -> list[Path]:
    """Every page, those at the top of the repository first."""
    top = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
    return [*top, *sorted((ROOT / "docs").rglob("*.md"))]


def text_of(name: str) -> str:
    """A page by its path in the repository."""
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(text: str) -> Iterator[Block]:
    """The code blocks of a page."""
    for found in _FENCED.finditer(text):
        yield Block(found[1], found[2], text.count("\n", 0, found.start()) + 2)


def without_code(text: str) -> str:
    """A page's prose."""
    return _FENCED.sub("", text)
