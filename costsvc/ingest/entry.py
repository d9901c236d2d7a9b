"""What all catalog files share: strict fields, one source for each fact, refusals by file, line and field."""

from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from costsvc.db import entries
from costsvc.errors import InvalidCatalogFile
from costsvc.ingest.faults import complaint_of
from costsvc.ingest.lines import Document

Slug: TypeAlias = Annotated[
    str, StringConstraints(strict=True, pattern=r"^[a-z0-9][a-z0-9._:+/-]*$", max_length=120)
]
Text: TypeAlias = Annotated[str, StringConstraints(strict=True, min_length=1, strip_whitespace=True)]
Count: TypeAlias = Annotated[int, Field(strict=True, gt=0)]
Quantity: TypeAlias = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
Day: TypeAlias = Annotated[date, Field(strict=True)]
SourceKind: TypeAlias = Literal[
    "vendor", "vendor-copy", "third-party", "code", "driver-output", "derived", "estimate"
]


def _written_as_text(value: object) -> object:
    """Money is quoted in the files: an unquoted 0.10 would pass through binary floating point."""
    if not isinstance(value, str):
        raise ValueError('write money in quotes, as in "2.49"')
    return value


Money: TypeAlias = Annotated[
    Decimal,
    BeforeValidator(_written_as_text),
    Field(gt=0, max_digits=18, decimal_places=10, allow_inf_nan=False),
]


def mistake(complaint: str, *place: str | int) -> PydanticCustomError:
    """A refusal that knows where in the file it bites."""
    return PydanticCustomError("mistake", "{complaint}", {"complaint": complaint, "place": place})


class Strict(BaseModel):
    """No field that the schema does not know; no change after reading. What reads it is made when it first does."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class SourceFields(Strict):
    """Where something was read. `locator` says where in it, `quoted` what stands there."""

    title: Text
    kind: SourceKind
    url: Text | None = None
    locator: Text | None = None
    quoted: Text | None = None
    accessed: Day | None = None

    def record(self, source_id: str) -> entries.Source:
        """The source as stored; what it prints is kept beside where it prints it."""
        printed = f"prints: {self.quoted}" if self.quoted else None
        locator = "; ".join(part for part in (self.locator, printed) if part)
        return entries.Source(
            id=source_id,
            title=self.title,
            kind=self.kind,
            url=self.url,
            locator=locator or None,
            accessed=self.accessed,
        )


class CoveringSource(SourceFields):
    """A source inside an entry, and the fields it is the source of."""

    covers: Annotated[list[Text], Field(min_length=1)]


class Conflict(Strict):
    """Another value that somebody prints for a field, and why it was not taken."""

    field: Text
    other_value: Text
    said_by: Text
    reason: Text


class Confirmation(Strict):
    """A second reading that agrees. It is evidence, not the source of the value."""

    fields: Annotated[list[Text], Field(min_length=1)]
    title: Text
    quoted: Text | None = None


class Entry(Strict):
    """A catalog file: facts, and one source for each.

    A spelling in `ambiguous_aliases` means several entries on purpose (`A100` has 40 or 80 GB): whoever asks
    is shown them all. One in `aliases` means this entry alone.
    """

    identity: ClassVar[frozenset[str]] = frozenset(
        {"id", "name", "aliases", "ambiguous_aliases", "sources", "conflicts", "notes"}
    )

    id: Slug
    name: Text
    sources: Annotated[list[CoveringSource], Field(min_length=1)]
    aliases: list[Text] = []
    ambiguous_aliases: list[Text] = []
    conflicts: list[Conflict] = []
    notes: Text | None = None

    def facts(self) -> set[str]:
        """Names of the fields that the file states and that need a source."""
        return set(self.model_fields_set) - self.identity

    @model_validator(mode="after")
    def every_fact_has_exactly_one_source(self) -> Self:
        facts = self.facts()
        covered = [field for source in self.sources for field in source.covers]
        _refuse("without a source", facts - set(covered))
        _refuse("sourced but absent", set(covered) - facts)
        _refuse("sourced twice", {field for field in covered if covered.count(field) > 1})
        _refuse("in conflict but absent", {conflict.field for conflict in self.conflicts} - facts)
        return self

    def spellings(self) -> tuple[str, ...]:
        """All aliases, ambiguous ones included."""
        return (*self.aliases, *self.ambiguous_aliases)

    def source_records(self, kind: str) -> list[entries.Source]:
        """The entry's sources, numbered within it."""
        return [source.record(f"{kind}/{self.id}/{n}") for n, source in enumerate(self.sources, start=1)]

    def fact_sources(self, kind: str) -> tuple[entries.FactSource, ...]:
        """Which source covers which field, in the order of the fields."""
        by_field = {
            field: f"{kind}/{self.id}/{n}"
            for n, source in enumerate(self.sources, start=1)
            for field in source.covers
        }
        return tuple(
            entries.FactSource(field=field, source_id=by_field[field])
            for field in type(self).model_fields
            if field in by_field
        )


Model = TypeVar("Model", bound=BaseModel)


def validated(document: Document, schema: type[Model]) -> Model:
    """The document as its schema.

    Raises
    ------
    InvalidCatalogFile
        With the file, the line and the field of the first mistake.
    """
    try:
        return schema.model_validate(document.values)
    except ValidationError as error:
        first: dict[str, Any] = dict(error.errors(include_url=False)[0])
        place = (*first["loc"], *first.get("ctx", {}).get("place", ()))
        complaint = complaint_of(first, schema)
        field = ".".join(str(part) for part in place) or None
        raise InvalidCatalogFile(
            document.path, complaint, line=document.line_of(place), field=field
        ) from error


def _refuse(complaint: str, fields: Iterable[str]) -> None:
    if names := sorted(fields):
        raise mistake(f"Fields {complaint}: {', '.join(names)}", names[0])
