"""Accelerator files: numbers as the datasheet prints them. Here they become SI, once."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from costsvc.db import entries
from costsvc.engine.specs import GpuSpec
from costsvc.engine.units import GIB, GIGA, MIB, TERA
from costsvc.ingest.entry import Confirmation, Count, Day, Entry, Quantity, Slug, Text, mistake

SpecCheck = Literal["verified", "single-source", "unverified"]

RATES = ("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp6", "fp4")


class GpuFile(Entry):
    """One accelerator, by its datasheet.

    `memory_gib` is the label: makers print GB, but stacks are sized in binary units. `driver_memory_mib` is
    what the driver shows and what weights and cache must fit; `usable_memory_gib` stands in where only a
    document says what software sees. All rates are dense. Links are one direction, half of the advertised.
    """

    identity: ClassVar[frozenset[str]] = Entry.identity | {
        "vendor",
        "confirmations",
        "spec_check",
        "fields_not_confirmed",
    }

    vendor: Slug
    generation: Slug
    memory_gib: Quantity
    driver_memory_mib: Count | None = None
    usable_memory_gib: Quantity | None = None
    memory_bandwidth_gb_per_s: Quantity
    dense_fp32_tflops: Quantity | None = None
    dense_tf32_tflops: Quantity | None = None
    dense_bf16_tflops: Quantity | None = None
    dense_fp16_tflops: Quantity | None = None
    dense_fp8_tflops: Quantity | None = None
    dense_int8_tflops: Quantity | None = None
    dense_fp6_tflops: Quantity | None = None
    dense_fp4_tflops: Quantity | None = None
    sparsity_2to4_multiplier: Annotated[float, Field(strict=True, ge=1)] | None = None
    scale_up_link: Text | None = None
    scale_up_gb_per_s_per_direction: Quantity | None = None
    scale_up_domain_gpus: Count = 1
    pcie_generation: Count
    pcie_lanes: Count
    pcie_gb_per_s_per_direction: Quantity
    power_w: Quantity | None = None
    released: Day | None = None
    spec_check: SpecCheck
    fields_not_confirmed: dict[Literal["single-source", "unverified"], list[Text]] = Field(
        default_factory=dict
    )
    confirmations: list[Confirmation] = Field(default_factory=list)

    @model_validator(mode="after")
    def computes_in_16_bit(self) -> Self:
        """Weights of any type can run at a 16-bit rate, so one must be known."""
        if self.dense_bf16_tflops is None and self.dense_fp16_tflops is None:
            raise mistake("State dense_bf16_tflops or dense_fp16_tflops")
        return self

    @model_validator(mode="after")
    def a_link_has_a_rate_and_a_domain(self) -> Self:
        parts = (self.scale_up_link, self.scale_up_gb_per_s_per_direction)
        if any(part is None for part in parts) and any(part is not None for part in parts):
            complaint = "State scale_up_link and scale_up_gb_per_s_per_direction together, or neither"
            raise mistake(complaint, "scale_up_link")
        if self.scale_up_link is None and self.scale_up_domain_gpus > 1:
            complaint = "A scale-up domain of several accelerators needs scale_up_link"
            raise mistake(complaint, "scale_up_domain_gpus")
        return self

    @model_validator(mode="after")
    def software_sees_no_more_than_the_label(self) -> Self:
        if self._usable_bytes() > self.memory_gib * GIB:
            raise mistake("Software cannot see more memory than memory_gib", "driver_memory_mib")
        return self

    @model_validator(mode="after")
    def remarks_are_about_facts(self) -> Self:
        named = {field for group in self.fields_not_confirmed.values() for field in group}
        named |= {field for one in self.confirmations for field in one.fields}
        if unknown := sorted(named - self.facts()):
            complaint = f"Remarks about fields that the file does not state: {', '.join(unknown)}"
            raise mistake(complaint, "fields_not_confirmed")
        return self

    def spec(self) -> GpuSpec:
        """The datasheet for the engine. Without a scale-up link, ranks talk over PCIe."""
        printed = {rate: getattr(self, f"dense_{rate}_tflops") for rate in RATES}
        link = self.scale_up_gb_per_s_per_direction or self.pcie_gb_per_s_per_direction
        return GpuSpec(
            id=self.id,
            generation=self.generation,
            memory_bytes=self.memory_gib * GIB,
            usable_memory_bytes=self._usable_bytes(),
            memory_bytes_per_s=self.memory_bandwidth_gb_per_s * GIGA,
            dense_flops_per_s={rate: tflops * TERA for rate, tflops in printed.items() if tflops is not None},
            link_bytes_per_s=link * GIGA,
            link_domain_gpus=self.scale_up_domain_gpus,
            pcie_bytes_per_s=self.pcie_gb_per_s_per_direction * GIGA,
            power_w=self.power_w,
        )

    def record(self) -> entries.GpuEntry:
        """The accelerator as stored."""
        return entries.GpuEntry(
            id=self.id,
            name=self.name,
            vendor=self.vendor,
            spec=self.spec(),
            aliases=self.spellings(),
            fact_sources=self.fact_sources("gpus"),
            spec_check=self.spec_check,
            fields_not_confirmed=tuple(
                field for group in self.fields_not_confirmed.values() for field in group
            ),
            released=self.released,
            notes=self.notes,
        )

    def _usable_bytes(self) -> float:
        """What software sees. Where nobody printed it, the label in decimal units: the lesser reading."""
        if self.driver_memory_mib is not None:
            return float(self.driver_memory_mib * MIB)
        if self.usable_memory_gib is not None:
            return self.usable_memory_gib * GIB
        return self.memory_gib * GIGA
