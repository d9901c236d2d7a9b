"""Calibration files: judgements with their kind, day and scope. One source stands for a whole file."""

from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from costsvc.db import entries
from costsvc.ingest.entry import Count, Day, Slug, SourceFields, Strict, Text, mistake

ScopeKey: TypeAlias = Literal["gpu", "generation", "stack", "architecture", "dtype"]
Name: TypeAlias = Annotated[
    str, Field(strict=True, pattern=r"^[a-z][a-z0-9_]*(\.[a-z0-9_]+)*$", max_length=80)
]
Number: TypeAlias = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]

_SHARE: Final = "_share"
_DIVISORS: Final = (
    "_mfu_share",
    "_mbu_share",
    "_efficiency_share",
    "utilization_share",
    "_bytes_per_s",
    "_budget_tokens",
    "block_tokens",
    "captured_tokens",
    "match_tokens",
    "evenness_ratio",
    "slowdown_ratio",
)
"""Ends of the names of what something is divided by, or by whose absence nothing would run."""


class JudgementFields(Strict):
    """One number that somebody measured or estimated, and where it holds."""

    name: Name
    value: Number
    unit: Text
    kind: Literal["measured", "estimate"]
    dated: Day
    scope: dict[ScopeKey, Slug] = Field(default_factory=dict)
    points: Count | None = None
    scatter_ratio: Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)] | None = None
    reason: Text | None = None

    @model_validator(mode="after")
    def is_possible(self) -> Self:
        """A share is at most 1, and what divides is not 0."""
        if self.name.endswith(_SHARE) and self.value > 1:
            raise mistake(f"{self.name} is {self.value:g}; a share is at most 1", "value")
        if self.name.endswith(_DIVISORS) and not self.value:
            raise mistake(f"{self.name} is 0; it has to be more", "value")
        return self

    @model_validator(mode="after")
    def says_what_it_rests_on(self) -> Self:
        """A measurement has points; an estimate has a reason."""
        if self.kind == "measured" and self.points is None:
            raise mistake("A measured value states its number of points", "kind")
        if self.kind == "estimate" and self.reason is None:
            raise mistake("An estimate states its reason", "kind")
        return self


class JudgementFile(Strict):
    """A file under `calibration/`: what it rests on, and the judgements."""

    source: SourceFields
    judgements: Annotated[list[JudgementFields], Field(min_length=1)]

    def records(self, source_id: str) -> tuple[entries.Judgement, ...]:
        """The judgements as stored, all from the file's source."""
        return tuple(
            entries.Judgement(
                name=one.name,
                value=one.value,
                unit=one.unit,
                kind=one.kind,
                dated=one.dated,
                source_id=source_id,
                scope=tuple(sorted(one.scope.items())),
                points=one.points,
                scatter_ratio=one.scatter_ratio,
                reason=one.reason,
            )
            for one in self.judgements
        )
