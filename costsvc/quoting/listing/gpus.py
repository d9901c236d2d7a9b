"""Accelerators, with what an hour of each costs on a day."""

from dataclasses import dataclass
from datetime import date
from typing import Any

from pydantic import Field

from costsvc.db.entries import GpuEntry
from costsvc.db.snapshot import Catalog
from costsvc.errors import NoPriceInForce
from costsvc.quoting.listing.common import SourceRow, as_printed, facts, mentions, one_of
from costsvc.quoting.listing.parts import Ordered, part
from costsvc.quoting.request import Text


class GpuFilter(Ordered):
    """Which accelerators."""

    vendor: Text | None = Field(None, description="Only this vendor.")
    q: Text | None = Field(None, description="Only accelerators whose id, name or alias contains this.")


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRow:
    """An accelerator in a list, in SI units, with its on-demand reference price on the day."""

    id: str
    name: str
    vendor: str
    generation: str
    released: date | None
    memory_bytes: float
    usable_memory_bytes: float
    memory_bytes_per_s: float
    dense_flops_per_s: dict[str, float]
    link_bytes_per_s: float
    link_domain_gpus: int
    pcie_bytes_per_s: float
    power_w: float | None
    spec_check: str
    reference_usd_per_gpu_hour: str | None
    aliases: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuDetail(GpuRow):
    """An accelerator with where its numbers were read."""

    fields_not_confirmed: tuple[str, ...]
    notes: str | None
    sources: tuple[SourceRow, ...]


def list_gpus(catalog: Catalog, wanted: GpuFilter, today: date) -> list[GpuRow]:
    """Accelerators, by id."""
    vendor = one_of("vendor", wanted.vendor, (entry.vendor for entry in catalog.gpus.values()), "/gpus")
    rows = (
        GpuRow(**_gpu_row(catalog, entry, wanted.as_of or today))
        for _, entry in sorted(catalog.gpus.items())
        if vendor in (None, entry.vendor) and mentions(wanted.q, (entry.id, entry.name, *entry.aliases))
    )
    return part(rows, wanted, GpuRow)


def show_gpu(catalog: Catalog, text: str, day: date) -> GpuDetail:
    """One accelerator, by id or alias."""
    entry = catalog.gpu(text)
    return GpuDetail(
        **_gpu_row(catalog, entry, day),
        fields_not_confirmed=entry.fields_not_confirmed,
        notes=entry.notes,
        sources=facts(catalog, entry.fact_sources),
    )


def _gpu_row(catalog: Catalog, entry: GpuEntry, day: date) -> dict[str, Any]:
    spec = entry.spec
    return {
        "id": entry.id,
        "name": entry.name,
        "vendor": entry.vendor,
        "generation": spec.generation,
        "released": entry.released,
        "memory_bytes": spec.memory_bytes,
        "usable_memory_bytes": spec.usable_memory_bytes,
        "memory_bytes_per_s": spec.memory_bytes_per_s,
        "dense_flops_per_s": dict(spec.dense_flops_per_s),
        "link_bytes_per_s": spec.link_bytes_per_s,
        "link_domain_gpus": spec.link_domain_gpus,
        "pcie_bytes_per_s": spec.pcie_bytes_per_s,
        "power_w": spec.power_w,
        "spec_check": entry.spec_check,
        "reference_usd_per_gpu_hour": _reference(catalog, entry.id, day),
        "aliases": entry.aliases,
    }


def _reference(catalog: Catalog, gpu_id: str, day: date) -> str | None:
    try:
        return as_printed(catalog.reference_price(gpu_id, day).usd_per_gpu_hour)
    except NoPriceInForce:
        return None
