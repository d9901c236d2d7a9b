"""Model files: shapes as the configuration prints them, checked against the published parameter count."""

from dataclasses import asdict
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from costsvc.db import entries
from costsvc.engine.attention import Attention
from costsvc.engine.parameters import parameter_count
from costsvc.engine.specs import DenseFfn, LayerGroup, ModelSpec, MoeFfn, RopeScaling
from costsvc.ingest.entry import Count, Day, Entry, Quantity, Slug, Text, mistake
from costsvc.ingest.layers import Layer, layer_order

Mixers = dict[Slug, Annotated[Attention, Field(discriminator="kind")]]
Blocks = dict[Slug, Annotated[DenseFfn | MoeFfn, Field(discriminator="kind")]]

TOLERATED_DIFFERENCE = 0.02


class ModelFile(Entry):
    """One model.

    `layers` spells the order of the blocks that `attention` and `ffn` name. `norm_vectors` is how many
    vectors of the hidden size the norms of a layer hold. `published_counts_also` says what the published
    count holds beside what a deployment loads: the MTP layers, or a tied head that the file stores twice.
    """

    identity: ClassVar[frozenset[str]] = Entry.identity | {"family", "parameter_difference_reason"}

    family: Slug
    hf_id: Text | None = None
    licence: Text | None = None
    released: Day | None = None
    released_weights: Slug
    max_context_tokens: Count
    hidden_size: Count
    vocab_size: Count
    tied_embeddings: Annotated[bool, Field(strict=True)]
    layers: Text
    attention: Mixers
    ffn: Blocks
    norm_vectors: Annotated[int, Field(strict=True, ge=0, le=16)] = 2
    position_values: Count | None = None
    extra_parameters: Count | None = None
    resident_parameters: Count | None = None
    mtp_parameters: Count | None = None
    rope_scaling: RopeScaling | None = None
    published_parameters: Quantity | None = None
    published_counts_also: list[Literal["mtp", "tied-head-copy"]] = Field(default_factory=list)
    parameter_difference_reason: Text | None = None

    @model_validator(mode="after")
    def shapes_are_positive(self) -> Self:
        for kind, blocks in (("attention", self.attention), ("ffn", self.ffn)):
            for name, block in blocks.items():
                for field, value in asdict(block).items():
                    if isinstance(value, (int, float)) and value < 0:
                        complaint = f"{name}.{field} is {value}; a shape is not negative"
                        raise mistake(complaint, kind, name, field)
        return self

    @model_validator(mode="after")
    def scaling_reaches_beyond_the_original_positions(self) -> Self:
        scaling = self.rope_scaling
        if scaling is None or (
            0 < scaling.original_tokens < self.max_context_tokens and scaling.factor_ratio > 1
        ):
            return self
        raise mistake(
            f"original_tokens is {scaling.original_tokens} and factor_ratio {scaling.factor_ratio:g}, but the context "
            f"is {self.max_context_tokens}: scaling stretches positions beyond the original ones",
            "rope_scaling",
        )

    @model_validator(mode="after")
    def every_block_is_used(self) -> Self:
        try:
            used = {name for layer in self._order() for name in layer if name}
        except ValueError as error:
            raise mistake(str(error), "layers") from error
        if unused := sorted({*self.attention, *self.ffn} - used):
            raise mistake(f"The layers never use: {', '.join(unused)}", "layers")
        return self

    @model_validator(mode="after")
    def computed_parameters_match_the_published(self) -> Self:
        if self.published_parameters is None:
            return self
        computed = self.file_parameters()
        difference = computed / self.published_parameters - 1
        if abs(difference) > TOLERATED_DIFFERENCE and self.parameter_difference_reason is None:
            raise mistake(
                f"Computed {computed:,} parameters, published {self.published_parameters:,.0f}: "
                f"{difference:+.1%}. State parameter_difference_reason or correct the shapes",
                "published_parameters",
            )
        return self

    def file_parameters(self) -> int:
        """Parameters in the released file: those loaded, and those it holds beside them. [parameters]"""
        spec = self.spec()
        also = {"mtp": spec.mtp_parameters, "tied-head-copy": spec.vocab_size * spec.hidden_size}
        return parameter_count(spec) + sum(also[part] for part in self.published_counts_also)

    def spec(self) -> ModelSpec:
        """The shapes for the engine."""
        order = self._order()
        distinct = list(dict.fromkeys(order))
        return ModelSpec(
            id=self.id,
            hidden_size=self.hidden_size,
            vocab_size=self.vocab_size,
            tied_embeddings=self.tied_embeddings,
            max_context_tokens=self.max_context_tokens,
            groups=tuple(
                LayerGroup(
                    attention=self.attention[mixer] if mixer else None,
                    ffn=self.ffn[block] if block else None,
                    norm_vectors=self.norm_vectors,
                )
                for mixer, block in distinct
            ),
            pattern=tuple(distinct.index(layer) for layer in order),
            position_values=self.position_values or 0,
            extra_parameters=self.extra_parameters or 0,
            resident_parameters=self.resident_parameters or 0,
            mtp_parameters=self.mtp_parameters or 0,
            rope_scaling=self.rope_scaling,
        )

    def record(self, sources: str = "models") -> entries.ModelEntry:
        """The model as stored; ids of its sources begin with `sources`."""
        return entries.ModelEntry(
            id=self.id,
            name=self.name,
            family=self.family,
            spec=self.spec(),
            released_weights=self.released_weights,
            aliases=self.spellings(),
            fact_sources=self.fact_sources(sources),
            hf_id=self.hf_id,
            licence=self.licence,
            released=self.released,
            published_parameters=None
            if self.published_parameters is None
            else int(self.published_parameters),
            parameter_difference_reason=self.parameter_difference_reason,
            notes=self.notes,
        )

    def _order(self) -> list[Layer]:
        return layer_order(self.layers, set(self.attention), set(self.ffn))
