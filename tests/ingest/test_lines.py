"""YAML as the catalog allows it: plain values, each with its line."""

from datetime import date
from pathlib import Path

import pytest

from costsvc.errors import InvalidCatalogFile
from costsvc.ingest.lines import Document, read_document


def document(tmp_path: Path, text: str) -> Document:
    path = tmp_path / "file.yaml"
    path.write_bytes(text.encode("utf-8"))
    return read_document(path, "file.yaml")


def test_values_have_their_types(tmp_path: Path) -> None:
    text = 'a: 1\nb: 0.5\nc: yes\nd: 2026-11-29\ne: null\nf: "1"\ng: [x, {h: y}]\n2025-01-01: z\n'
    assert document(tmp_path, text).values == {
        "a": 1,
        "b": 0.5,
        "c": True,
        "d": date(2026, 11, 29),
        "e": None,
        "f": "1",
        "g": ["x", {"h": "y"}],
        "2025-01-01": "z",
    }


def test_a_place_has_the_line_of_its_deepest_known_part(tmp_path: Path) -> None:
    found = document(tmp_path, "a:\n  - b: 1\n    c: 2\n  - d: 3\n")
    assert found.line_of(("a", 0, "c")) == 3
    assert found.line_of(("a", 1, "d")) == 4
    assert found.line_of(("a", "tag-of-a-union", 1)) == 4
    assert found.line_of(("a", 7)) == 1
    assert found.line_of(()) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\na: 2\n", "file.yaml:2: field 'a': stands twice"),
        ("a: {b: 1,\n  b: 2}\n", "file.yaml:2: field 'b': stands twice"),
        ("a: &x [1]\nb: *x\n", "file.yaml:1: YAML aliases are not used here"),
        ("a: !mine {b: 1}\n", "file.yaml:1: the tag !mine is not used here"),
        ("a: !!binary aGk=\n", "is neither text, number, day"),
        ("a: 2026-11-29 10:00:00\n", "is a time; write a day"),
        ("a: 2026-02-30\n", "cannot be read"),
        ('a: "b\\x07"\n', "file.yaml:1: text holds a control character"),
        ('a: "b\\u200b"\n', "file.yaml:1: text holds a control character"),
        ("a: b\x07\n", "is not YAML"),
        ("a: [1\n", "is not YAML"),
        ("", "is empty"),
        ("# only a remark\n", "is empty"),
    ],
)
def test_what_is_not_plain_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InvalidCatalogFile) as caught:
        document(tmp_path, text)
    assert said in caught.value.message


def test_a_tag_never_runs_code(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    with pytest.raises(InvalidCatalogFile, match="is not used here"):
        document(tmp_path, f"a: !!python/object/apply:os.mkdir ['{marker}']\n")
    assert not marker.exists()


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_bytes(b"a: \xff\xfe\n")
    with pytest.raises(InvalidCatalogFile, match="is not UTF-8 text"):
        read_document(path, "file.yaml")
