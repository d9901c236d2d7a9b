"""What the catalog holds, as plain records: files are read into them, rows are stored from them.

One `CatalogContent` is one whole catalog. `ingest` builds it from files; `repository` stores it as a
revision and reads it back; `snapshot` answers questions about it. Facts stay as printed where a person
reviews them and are in SI inside the specs.
"""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Literal, TypeAlias

from costsvc.engine.specs import DtypeSpec, GpuSpec, MemoryRule, ModelSpec, WindowRule

Market: TypeAlias = Literal["on-demand", "spot", "reserved-1y", "reserved-3y", "reserved-6m", "owned"]
Kind: TypeAlias = Literal["measured", "estimate", "vendor", "third-party", "derived"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where facts were read. `id` is unique in the catalog."""

    id: str
    title: str
    kind: str
    url: str | None = None
    locator: str | None = None
    accessed: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FactSource:
    """Which source covers which field of an entry: each fact has exactly one."""

    field: str
    source_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """A model: its shapes, how it was released and what it was checked against.

    `released_weights` names the dtype plan as released (`bf16`, `fp8`, `mxfp4-experts`, ...); `weight_plans`
    in the catalog say what each plan stores. `published_parameters` is what the computed count is held against.
    """

    id: str
    name: str
    family: str
    spec: ModelSpec
    released_weights: str
    aliases: tuple[str, ...]
    fact_sources: tuple[FactSource, ...]
    hf_id: str | None = None
    licence: str | None = None
    released: date | None = None
    published_parameters: int | None = None
    parameter_difference_reason: str | None = None
    notes: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuEntry:
    """An accelerator. `spec_check` is the worst confirmation among the rates and sizes that price a quote."""

    id: str
    name: str
    vendor: str
    spec: GpuSpec
    aliases: tuple[str, ...]
    fact_sources: tuple[FactSource, ...]
    spec_check: Literal["verified", "single-source", "unverified"]
    fields_not_confirmed: tuple[str, ...] = ()
    released: date | None = None
    notes: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedPrice:
    """A price in force from `first_day` until the next one; None ends the offer."""

    first_day: date
    usd_per_gpu_hour: Decimal | None
    source_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One rentable (or owned) way to have a GPU, with its price history in order of its days.

    `excluded_reason` keeps an offer visible but out of reference prices (component-only, community
    marketplace, undated, suspicious). `provider` is the normalised name.
    """

    id: str
    provider: str
    gpu_id: str
    market: Market
    prices: tuple[DatedPrice, ...]
    instance_type: str | None = None
    gpus_per_instance: int | None = None
    region: str | None = None
    basis: str = "per-gpu"
    excluded_reason: str | None = None
    notes: str | None = None


TIER_MARK = " (above "
"""Begins what is put behind a seller's model id where the price is of long prompts only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateOffer:
    """An offer that one owner negotiated, and the sources that its prices name."""

    offer: Offer
    sources: tuple[Source, ...]


# Compared by identity: each state is read once, and what is kept of it goes with it.
@dataclass(frozen=True, eq=False, kw_only=True)
class PrivatePrices:
    """All that an owner negotiated, as of one revision of that owner's own; these count from 1."""

    owner: str
    revision: int
    offers: tuple[PrivateOffer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiPrice:
    """A published price of tokens, as observed on a day. A missing price is None, never zero.

    A seller whose long prompts are dearer has one for each tier, with the longest prompt of it; the last one's
    is the longest context.
    """

    provider: str
    provider_model_id: str
    source_id: str
    observed: date | None
    model_id: str | None = None
    input_usd_per_mtok: Decimal | None = None
    cached_input_usd_per_mtok: Decimal | None = None
    output_usd_per_mtok: Decimal | None = None
    context_limit_tokens: int | None = None
    notes: str | None = None

    @property
    def sold_as(self) -> tuple[str, str]:
        """Seller and model, whatever the tier."""
        return self.provider, self.provider_model_id.partition(TIER_MARK)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class FxRate:
    """A reference rate in force from `first_day` until the next one. [units of currency/USD]"""

    currency: str
    first_day: date
    units_per_usd: Decimal
    source_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """One calibrated or assumed number.

    `scope` narrows where it holds: keys among `gpu`, `generation`, `stack`, `architecture` (`dense`, `moe`) and
    `dtype`; the entry with the narrowest matching scope is used. `scatter_ratio` is the 10-90 half-width of its
    residuals, where measured.
    """

    name: str
    value: float
    unit: str
    kind: Literal["measured", "estimate"]
    dated: date
    source_id: str
    scope: tuple[tuple[str, str], ...] = ()
    points: int | None = None
    scatter_ratio: float | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightPlanEntry:
    """A named release or quantisation: the dtype of each class of tensors."""

    id: str
    attention: str
    ffn: str
    experts: str
    embedding: str
    other: str
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StackEntry:
    """A serving stack: how it takes memory, and the pairs (weight dtype, GPU generation) it has no kernel for.

    `memory_rule` says what `memory_utilization_share` is a share of (see `Calibration`); engines that reserve
    the full length never evict. `window_rule` says what sliding and chunked layers hold: their window; the same
    with layer groups padded to one size, chunked layers whole (vLLM); or everything.
    `kv_beside_quantised` is the cache dtype of quantised checkpoints where benchmarks do not say; None is 16 bit.
    """

    id: str
    name: str
    aliases: tuple[str, ...]
    memory_rule: MemoryRule
    reserves_full_length: bool
    window_rule: WindowRule
    kv_beside_quantised: str | None
    without_kernel: tuple[tuple[str, str], ...]
    source_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DtypeEntry:
    """A storage type, its other spellings and where its size comes from."""

    spec: DtypeSpec
    aliases: tuple[str, ...]
    source_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileEntry:
    """A traffic profile. `traffic` is its fields as canonical JSON, because profiles differ in kind."""

    id: str
    name: str
    description: str
    traffic: str
    aliases: tuple[str, ...]
    fact_sources: tuple[FactSource, ...]
    notes: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogContent:
    """One whole catalog."""

    sources: tuple[Source, ...]
    models: tuple[ModelEntry, ...]
    gpus: tuple[GpuEntry, ...]
    offers: tuple[Offer, ...]
    api_prices: tuple[ApiPrice, ...]
    judgements: tuple[Judgement, ...]
    dtypes: tuple[DtypeEntry, ...]
    weight_plans: tuple[WeightPlanEntry, ...]
    stacks: tuple[StackEntry, ...]
    profiles: tuple[ProfileEntry, ...] = ()
    fx_rates: tuple[FxRate, ...] = ()
