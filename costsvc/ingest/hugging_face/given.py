"""What is posted of a model: its configuration, and what a configuration cannot say."""

import re
from typing import Annotated, Any, Final, TypeAlias

from pydantic import AfterValidator, Field

from costsvc.ingest.entry import Count, Day, Slug, SourceFields, Strict, Text

_LONGEST: Final = 200
_WORDS: Final = re.compile(r"\w[\w .,:;/()+&'@#*-]*", re.ASCII)
_FILE_ID: Final = re.compile(r"[a-z0-9]+(?:[._+-][a-z0-9]+)*")
_REPOSITORY: Final = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9]+(?:[._-]+[A-Za-z0-9]+)*", re.ASCII)


def _words(text: str) -> str:
    return _matching(text, _WORDS, "one line of letters, digits, spaces and . , : ; / ( ) + & ' @ # * - _")


def _file_id(text: str) -> str:
    return _matching(text, _FILE_ID, "small letters and digits, joined by . _ + or -, as 'example-9b'")


def _repository(text: str) -> str:
    return _matching(text, _REPOSITORY, "a repository, as 'org/name'")


def _matching(text: str, form: re.Pattern[str], what: str) -> str:
    """The text, if it has a form; it goes into files, tables and pages."""
    if len(text) > _LONGEST or not form.fullmatch(text):
        raise ValueError(f"{text[:60]!r} is not {what}, of at most {_LONGEST} characters")
    return text


Words: TypeAlias = Annotated[Text, AfterValidator(_words)]
FileId: TypeAlias = Annotated[Text, AfterValidator(_file_id)]
RepositoryId: TypeAlias = Annotated[Text, AfterValidator(_repository)]


class GivenFacts(Strict):
    """Facts from elsewhere than the configuration, and the one source of them."""

    released_weights: Slug | None = Field(
        None, description="Weight plan of the release, such as `bf16` or `fp8_block`."
    )
    max_context_tokens: Count | None = Field(None, description="Longest context. [token]")
    resident_parameters: Annotated[int, Field(strict=True, ge=0)] | None = Field(
        None, description="Parameters of vision and audio towers in memory. [parameters]"
    )
    published_parameters: Count | None = Field(
        None,
        description="Published count of the released file; the computed one is held against it. [parameters]",
    )
    parameter_difference_reason: Words | None = Field(
        None, description="Why the computed count is more than 2 % off the published one, where it is."
    )
    licence: Words | None = Field(None, description="Licence of the weights.")
    released: Day | None = Field(None, description="Day of the release.")
    source: SourceFields = Field(description="Where these were read.")


class ImportedConfig(Strict):
    """A model's configuration, and what it does not hold."""

    config: dict[str, Any] = Field(description="The content of `config.json`.", min_length=1, max_length=2000)
    hf_id: RepositoryId | None = Field(
        None,
        description="Repository as `org/name`; names the entry and its source where these are not given.",
    )
    id: FileId | None = Field(None, description="Id of the entry; absent: from `hf_id`.")
    name: Words | None = Field(None, description="Name of the entry; absent: from `hf_id`.")
    family: Slug | None = Field(
        None, description="Family of the entry; absent: the configuration's `model_type`."
    )
    aliases: list[Words] = Field([], max_length=50, description="Other spellings of the id.")
    built_like: Words | None = Field(
        None,
        description="A known `model_type` whose layers are built exactly alike, where the own one is unknown.",
    )
    source: SourceFields | None = Field(
        None, description="Where the configuration was read; absent: from `hf_id`."
    )
    given: GivenFacts | None = Field(None, description="Facts that the configuration does not hold.")
