"""Storage types, weight plans, serving stacks and shared sources: the short files of the catalog."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from costsvc.db import entries
from costsvc.engine.specs import DtypeSpec, MemoryRule, WindowRule
from costsvc.ingest.entry import Quantity, Slug, SourceFields, Strict, Text, mistake

Rate = Literal["fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp6", "fp4"]
SIXTEEN_BIT = frozenset({"bf16", "fp16"})


class DtypeFields(Strict):
    """A storage type. `arithmetic` names the rates that serve it, best first; the last is a 16-bit one."""

    id: Slug
    aliases: list[Text] = Field(default_factory=list)
    value_bytes: Quantity
    arithmetic: Annotated[list[Rate], Field(min_length=1)]
    source: Slug

    @model_validator(mode="after")
    def ends_in_a_16_bit_rate(self) -> Self:
        if self.arithmetic[-1] not in SIXTEEN_BIT:
            complaint = "The last rate of arithmetic is bf16 or fp16: every card has one of them"
            raise mistake(complaint, "arithmetic")
        return self

    def record(self) -> entries.DtypeEntry:
        """The type as stored."""
        spec = DtypeSpec(id=self.id, value_bytes=self.value_bytes, arithmetic=tuple(self.arithmetic))
        return entries.DtypeEntry(spec=spec, aliases=tuple(self.aliases), source_id=self.source)


class DtypesFile(Strict):
    """`dtypes.yaml`."""

    dtypes: Annotated[list[DtypeFields], Field(min_length=1)]


class WeightPlanFields(Strict):
    """A release or quantisation by name, and what it stores each class of tensors in."""

    id: Slug
    aliases: list[Text] = Field(default_factory=list)
    attention: Slug
    ffn: Slug
    experts: Slug
    embedding: Slug
    other: Slug
    source: Slug

    def record(self) -> entries.WeightPlanEntry:
        """The plan as stored."""
        return entries.WeightPlanEntry(
            id=self.id,
            attention=self.attention,
            ffn=self.ffn,
            experts=self.experts,
            embedding=self.embedding,
            other=self.other,
            aliases=tuple(self.aliases),
        )

    def dtypes(self) -> set[str]:
        """Every storage type it uses."""
        return {self.attention, self.ffn, self.experts, self.embedding, self.other}


class WeightPlansFile(Strict):
    """`weight_plans.yaml`."""

    weight_plans: Annotated[list[WeightPlanFields], Field(min_length=1)]


class MissingKernel(Strict):
    """Weights of a type that a stack cannot run on a generation of cards, not even widened to 16 bit."""

    dtype: Slug
    generation: Slug
    reason: Text


class StackFields(Strict):
    """A serving stack: how it takes memory, and what it has no kernel for. See `entries.StackEntry`."""

    id: Slug
    name: Text
    aliases: list[Text] = Field(default_factory=list)
    memory_rule: MemoryRule
    reserves_full_length: Annotated[bool, Field(strict=True)]
    window_rule: WindowRule
    kv_beside_quantised: Slug | None = None
    without_kernel: list[MissingKernel] = Field(default_factory=list)
    source: Slug

    def record(self) -> entries.StackEntry:
        """The stack as stored."""
        return entries.StackEntry(
            id=self.id,
            name=self.name,
            aliases=tuple(self.aliases),
            memory_rule=self.memory_rule,
            reserves_full_length=self.reserves_full_length,
            window_rule=self.window_rule,
            kv_beside_quantised=self.kv_beside_quantised,
            without_kernel=tuple((one.dtype, one.generation) for one in self.without_kernel),
            source_id=self.source,
        )


class StacksFile(Strict):
    """`stacks.yaml`."""

    stacks: Annotated[list[StackFields], Field(min_length=1)]


class SharedSource(SourceFields):
    """A source that many files name by its id."""

    id: Slug
    licence: Text | None = None


class SourcesFile(Strict):
    """`sources.yaml`."""

    sources: Annotated[list[SharedSource], Field(min_length=1)]
