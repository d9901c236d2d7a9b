"""The tables. Catalog rows are never changed: a new revision retires old rows and adds new ones.

A row belongs to every revision from `added_revision` up to, but not including, `retired_revision`, so any
revision can be read back as it was, also after prices of past days were added.
"""

from datetime import date, datetime
from decimal import Decimal
from typing import Any, ClassVar

from sqlalchemy import CheckConstraint, ForeignKey, Index, text
from sqlalchemy.orm import Mapped, declared_attr, mapped_column

from costsvc.db.columns import Base
from costsvc.db.private_tables import PrivateOfferRow, PrivateRevisionRow
from costsvc.db.quote_tables import StoredQuoteFormatRow, StoredQuoteRow

KEPT = (StoredQuoteRow, StoredQuoteFormatRow, PrivateRevisionRow, PrivateOfferRow)
"""Tables beside the catalog that stand in a module of their own."""


class RevisionRow(Base):
    """One state of the catalog."""

    __tablename__ = "revision"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    created_at: Mapped[datetime]
    content_hash: Mapped[str]
    author: Mapped[str]
    note: Mapped[str]
    rows_added: Mapped[int]
    rows_changed: Mapped[int]
    rows_retired: Mapped[int]


class CatalogFilesRow(Base):
    """The files that the catalog was read from last: one row, or none where it was not read from files."""

    __tablename__ = "catalog_files"

    fingerprint: Mapped[str] = mapped_column(primary_key=True)


class Versioned(Base):
    """A row of the catalog. `identity` tells rows of one revision apart; None where they may repeat."""

    __abstract__ = True
    identity: ClassVar[tuple[str, ...]]
    repeats: ClassVar[bool] = False

    row_id: Mapped[int] = mapped_column(primary_key=True)
    added_revision: Mapped[int] = mapped_column(ForeignKey("revision.id"))
    retired_revision: Mapped[int | None] = mapped_column(ForeignKey("revision.id"))

    @declared_attr.directive
    @classmethod
    def __table_args__(cls) -> tuple[Any, ...]:
        current = text("retired_revision IS NULL")
        return (
            CheckConstraint("retired_revision > added_revision", name="retired_later"),
            Index(
                f"ix_{cls.__tablename__}_current",
                *cls.identity,
                unique=not cls.repeats,
                postgresql_where=current,
                sqlite_where=current,
            ),
        )


class SourceRow(Versioned):
    __tablename__ = "source"
    identity = ("id",)

    id: Mapped[str]
    title: Mapped[str]
    kind: Mapped[str]
    url: Mapped[str | None]
    locator: Mapped[str | None]
    accessed: Mapped[date | None]


class ModelRow(Versioned):
    """`spec` is the model's shapes: a document, because layers differ in kind and number."""

    __tablename__ = "model"
    identity = ("id",)

    id: Mapped[str]
    name: Mapped[str]
    family: Mapped[str]
    hf_id: Mapped[str | None]
    licence: Mapped[str | None]
    released: Mapped[date | None]
    released_weights: Mapped[str]
    published_parameters: Mapped[int | None]
    parameter_difference_reason: Mapped[str | None]
    notes: Mapped[str | None]
    spec: Mapped[dict[str, Any]]


class GpuRow(Versioned):
    __tablename__ = "gpu"
    identity = ("id",)

    id: Mapped[str]
    name: Mapped[str]
    vendor: Mapped[str]
    generation: Mapped[str]
    memory_bytes: Mapped[float]
    usable_memory_bytes: Mapped[float]
    memory_bytes_per_s: Mapped[float]
    dense_flops_per_s: Mapped[dict[str, Any]]
    link_bytes_per_s: Mapped[float]
    link_domain_gpus: Mapped[int]
    pcie_bytes_per_s: Mapped[float]
    power_w: Mapped[float | None]
    spec_check: Mapped[str]
    fields_not_confirmed: Mapped[list[Any]]
    released: Mapped[date | None]
    notes: Mapped[str | None]


class ProviderRow(Versioned):
    """Who sells GPU hours, tokens or both."""

    __tablename__ = "provider"
    identity = ("name",)

    name: Mapped[str]
    sells_gpu_hours: Mapped[bool]
    sells_tokens: Mapped[bool]


class OfferRow(Versioned):
    __tablename__ = "offer"
    identity = ("id",)

    id: Mapped[str]
    provider: Mapped[str]
    gpu_id: Mapped[str]
    market: Mapped[str]
    instance_type: Mapped[str | None]
    gpus_per_instance: Mapped[int | None]
    region: Mapped[str | None]
    basis: Mapped[str]
    excluded_reason: Mapped[str | None]
    notes: Mapped[str | None]


class OfferPriceRow(Versioned):
    """A price in force from `first_day`; null ends the offer. A price change is one added row."""

    __tablename__ = "offer_price"
    identity = ("offer_id", "first_day")

    # Prices number a million: what one revision changed, and the history of one offer, are found by these.
    added_revision: Mapped[int] = mapped_column(ForeignKey("revision.id"), index=True)
    retired_revision: Mapped[int | None] = mapped_column(ForeignKey("revision.id"), index=True)
    offer_id: Mapped[str] = mapped_column(index=True)
    first_day: Mapped[date]
    usd_per_gpu_hour: Mapped[Decimal | None]
    source_id: Mapped[str]


class ApiPriceRow(Versioned):
    """Observations of token prices; two sources of one day may repeat each other."""

    __tablename__ = "api_price"
    identity = ("provider", "provider_model_id", "observed", "source_id")
    repeats = True

    provider: Mapped[str]
    provider_model_id: Mapped[str]
    model_id: Mapped[str | None]
    observed: Mapped[date | None]
    input_usd_per_mtok: Mapped[Decimal | None]
    cached_input_usd_per_mtok: Mapped[Decimal | None]
    output_usd_per_mtok: Mapped[Decimal | None]
    context_limit_tokens: Mapped[int | None]
    source_id: Mapped[str]
    notes: Mapped[str | None]


class FxRateRow(Versioned):
    """Units of a currency per US dollar, in force from `first_day`."""

    __tablename__ = "fx_rate"
    identity = ("currency", "first_day")

    currency: Mapped[str]
    first_day: Mapped[date]
    units_per_usd: Mapped[Decimal]
    source_id: Mapped[str]


class JudgementRow(Versioned):
    """`scope` is canonical JSON as text, so that it can tell rows apart."""

    __tablename__ = "judgement"
    identity = ("name", "scope", "dated")

    name: Mapped[str]
    scope: Mapped[str]
    value: Mapped[float]
    unit: Mapped[str]
    kind: Mapped[str]
    dated: Mapped[date]
    points: Mapped[int | None]
    scatter_ratio: Mapped[float | None]
    reason: Mapped[str | None]
    source_id: Mapped[str]


class DtypeRow(Versioned):
    __tablename__ = "dtype"
    identity = ("id",)

    id: Mapped[str]
    value_bytes: Mapped[float]
    arithmetic: Mapped[list[Any]]
    source_id: Mapped[str]


class WeightPlanRow(Versioned):
    __tablename__ = "weight_plan"
    identity = ("id",)

    id: Mapped[str]
    attention: Mapped[str]
    ffn: Mapped[str]
    experts: Mapped[str]
    embedding: Mapped[str]
    other: Mapped[str]


class StackRow(Versioned):
    __tablename__ = "stack"
    identity = ("id",)

    id: Mapped[str]
    name: Mapped[str]
    memory_rule: Mapped[str]
    reserves_full_length: Mapped[bool]
    window_rule: Mapped[str]
    kv_beside_quantised: Mapped[str | None]
    without_kernel: Mapped[list[Any]]
    source_id: Mapped[str]


class ProfileRow(Versioned):
    """`traffic` is canonical JSON as text: profiles differ in what they say of their lengths."""

    __tablename__ = "profile"
    identity = ("id",)

    id: Mapped[str]
    name: Mapped[str]
    description: Mapped[str]
    traffic: Mapped[str]
    notes: Mapped[str | None]


class AliasRow(Versioned):
    """Another spelling of an entry; two entries may share one, and a question by it is then ambiguous."""

    __tablename__ = "alias"
    identity = ("entry_kind", "entry_id", "alias")

    entry_kind: Mapped[str]
    entry_id: Mapped[str]
    alias: Mapped[str]


class FactSourceRow(Versioned):
    """Each fact has exactly one source."""

    __tablename__ = "fact_source"
    identity = ("entry_kind", "entry_id", "field")

    entry_kind: Mapped[str]
    entry_id: Mapped[str]
    field: Mapped[str]
    source_id: Mapped[str]


class ApiKeyRow(Base):
    """A key by the hash of its secret; the secret itself is shown once and kept nowhere."""

    __tablename__ = "api_key"

    id: Mapped[str] = mapped_column(primary_key=True)
    secret_hash: Mapped[str]
    scope: Mapped[str]
    label: Mapped[str]
    owner: Mapped[str]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class AuditRow(Base):
    """Who did what when; kept for good."""

    __tablename__ = "audit"

    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime] = mapped_column(index=True)
    actor: Mapped[str]
    action: Mapped[str]
    subject: Mapped[str]
    before: Mapped[dict[str, Any] | None]
    after: Mapped[dict[str, Any] | None]
