"""Profile files: every number of the traffic has a source, and a contradiction is named by its line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from costsvc.ingest.files import read_catalog

PROFILE = """\
id: chat
name: Chat
description: People who talk.
aliases: [assistant]
traffic:
  input_tokens: 900
  output_tokens: 200
  system_prompt_tokens: 300
sources:
  - covers: [input_tokens, output_tokens]
    title: A trace
    kind: derived
  - covers: [system_prompt_tokens]
    title: Our estimate
    kind: estimate
"""


@pytest.fixture
def root(root: Path) -> Path:
    """A catalog with one profile."""
    folder = root / "profiles"
    folder.mkdir()
    (folder / "chat.yaml").write_text(PROFILE, encoding="utf-8")
    return root


def test_a_profile_is_read_with_the_source_of_each_number(root: Path) -> None:
    (entry,) = read_catalog(root).profiles
    assert entry.traffic == '{"input_tokens":900,"output_tokens":200,"system_prompt_tokens":300}'
    assert {fact.field: fact.source_id for fact in entry.fact_sources} == {
        "input_tokens": "profiles/chat/1",
        "output_tokens": "profiles/chat/1",
        "system_prompt_tokens": "profiles/chat/2",
    }


MISTAKES = [
    ("[input_tokens, output_tokens]", "[input_tokens]", "without a source: output_tokens"),
    ("[system_prompt_tokens]", "[system_prompt_tokens, turns]", "sourced but absent: turns"),
    ("system_prompt_tokens: 300", "system_prompt_tokens: 900", "system_prompt_tokens is 900"),
    ("output_tokens: 200", "output_tokens: 0", "output_tokens"),
    ("id: chat", "id: talk", "has to be called talk.yaml"),
]


@pytest.mark.parametrize(("old", "new", "said"), MISTAKES)
def test_a_mistake_is_refused_by_file_and_field(
    refusal: Callable[[str, str, str], str], old: str, new: str, said: str
) -> None:
    message = refusal("profiles/chat.yaml", old, new)
    assert message.startswith("profiles/chat.yaml:")
    assert said in message
