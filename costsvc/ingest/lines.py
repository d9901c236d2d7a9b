"""YAML with line numbers: what was written, and where. Only the safe subset; no key may stand twice."""

import unicodedata
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TypeAlias

import yaml

from costsvc.errors import InvalidCatalogFile

Plain: TypeAlias = "str | int | float | bool | date | list[Plain] | dict[str, Plain] | None"

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DATE_TAG = "tag:yaml.org,2002:timestamp"
_TEXT_TAG = "tag:yaml.org,2002:str"
# Control and format characters, and halves of characters.
_REFUSED = frozenset({"Cc", "Cf", "Cs"})
_LIST_TAG = "tag:yaml.org,2002:seq"
_MAPPING_TAG = "tag:yaml.org,2002:map"


@dataclass(frozen=True, slots=True)
class Document:
    """One parsed file: its values, and the nodes that know their lines."""

    path: str
    values: Plain
    root: yaml.Node

    def line_of(self, place: Sequence[Hashable]) -> int:
        """Line of the deepest part of `place` that the file has; schema-only parts of a place are skipped."""
        node = self.root
        line = node.start_mark.line
        for part in place:
            child = _child(node, part)
            if child is not None:
                line, node = child
        return line + 1


def read_document(path: Path, shown_as: str) -> Document:
    """Parse one file.

    Raises
    ------
    InvalidCatalogFile
        The file is no YAML, has a key twice, or holds something other than text, numbers, dates and lists.
    """
    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), Loader=_Loader)
    except UnicodeDecodeError as error:
        raise InvalidCatalogFile(shown_as, f"is not UTF-8 text: {error.reason}") from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise InvalidCatalogFile(shown_as, f"is not YAML: {error.problem}", line=line) from error
    except yaml.YAMLError as error:
        raise InvalidCatalogFile(shown_as, "is not YAML: it holds a character that YAML refuses") from error
    if root is None:
        raise InvalidCatalogFile(shown_as, "is empty")
    return Document(path=shown_as, values=_Reader(shown_as).read(root), root=root)


class _Reader:
    """Nodes to plain values. Aliases of YAML are refused: a file says what it means where it means it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._scalars = yaml.SafeLoader("")
        self._seen: set[int] = set()

    def read(self, node: yaml.Node) -> Plain:
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if id(node) in self._seen:
            raise self._refusal(node, "YAML aliases are not used here; write the value out")
        self._seen.add(id(node))
        if isinstance(node, yaml.SequenceNode) and node.tag == _LIST_TAG:
            return [self.read(child) for child in node.value]
        if isinstance(node, yaml.MappingNode) and node.tag == _MAPPING_TAG:
            return self._mapping(node)
        raise self._refusal(node, f"the tag {node.tag} is not used here")

    def _mapping(self, node: yaml.MappingNode) -> dict[str, Plain]:
        values: dict[str, Plain] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            if key in values:
                raise self._refusal(key_node, "stands twice", field=key)
            values[key] = self.read(value_node)
        return values

    def _scalar(self, node: yaml.ScalarNode) -> Plain:
        if node.tag == _TEXT_TAG:
            return self._text(node)
        try:
            value = self._scalars.construct_object(node)
        except (yaml.YAMLError, ValueError) as error:
            raise self._refusal(node, f"'{node.value}' cannot be read") from error
        if node.tag == _DATE_TAG and type(value) is not date:
            raise self._refusal(node, f"'{node.value}' is a time; write a day")
        if value is None or isinstance(value, (bool, int, float, date)):
            return value
        raise self._refusal(node, f"'{node.value}' is neither text, number, day, true, false nor null")

    def _text(self, node: yaml.ScalarNode) -> str:
        text = str(node.value)
        if not text.isprintable() and any(unicodedata.category(sign) in _REFUSED for sign in text):
            raise self._refusal(node, "text holds a control character")
        return text

    def _refusal(self, node: yaml.Node, complaint: str, *, field: str | None = None) -> InvalidCatalogFile:
        return InvalidCatalogFile(self._path, complaint, line=node.start_mark.line + 1, field=field)


def _child(node: yaml.Node, part: Hashable) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == part:
                return key.start_mark.line, value
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and 0 <= part < len(node.value):
        return node.value[part].start_mark.line, node.value[part]
    return None
