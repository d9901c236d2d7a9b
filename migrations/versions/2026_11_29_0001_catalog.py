"""Tables of the catalog by revision, of keys and of the audit.

Why: first release. A catalog row carries the revision that added it and the one that retired it, so that an
old revision reads back exactly; a price change is one added row.
Down: drops every table. The catalog is in its files and is loaded again; keys and the audit are lost.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

INTEGER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
# SQLite would keep a decimal as binary floating point.
MONEY = sa.Numeric().with_variant(sa.Text(), "sqlite")
INSTANT = sa.DateTime(timezone=True)
JSON = sa.JSON()

CATALOG = (
    "source",
    "model",
    "gpu",
    "provider",
    "offer",
    "offer_price",
    "api_price",
    "judgement",
    "dtype",
    "weight_plan",
    "stack",
    "alias",
    "fact_source",
)


def upgrade() -> None:
    op.create_table(
        "revision",
        sa.Column("id", INTEGER, autoincrement=False, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("rows_added", INTEGER, nullable=False),
        sa.Column("rows_changed", INTEGER, nullable=False),
        sa.Column("rows_retired", INTEGER, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_revision"),
    )
    catalog()
    op.create_table(
        "api_key",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("secret_hash", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("expires_at", INSTANT),
        sa.Column("revoked_at", INSTANT),
        sa.PrimaryKeyConstraint("id", name="pk_api_key"),
    )
    op.create_table(
        "audit",
        sa.Column("id", INTEGER, nullable=False),
        sa.Column("at", INSTANT, nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("before", JSON),
        sa.Column("after", JSON),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
    )
    op.create_index("ix_audit_at", "audit", ["at"])


def downgrade() -> None:
    for table in ("audit", "api_key", *reversed(CATALOG), "revision"):
        op.drop_table(table)


def catalog() -> None:
    versioned(
        "source",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("url", sa.Text()),
        sa.Column("locator", sa.Text()),
        sa.Column("accessed", sa.Date()),
        identity=("id",),
    )
    versioned(
        "model",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("family", sa.Text(), nullable=False),
        sa.Column("hf_id", sa.Text()),
        sa.Column("licence", sa.Text()),
        sa.Column("released", sa.Date()),
        sa.Column("released_weights", sa.Text(), nullable=False),
        sa.Column("published_parameters", INTEGER),
        sa.Column("parameter_difference_reason", sa.Text()),
        sa.Column("notes", sa.Text()),
        sa.Column("spec", JSON, nullable=False),
        identity=("id",),
    )
    versioned(
        "gpu",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("vendor", sa.Text(), nullable=False),
        sa.Column("generation", sa.Text(), nullable=False),
        sa.Column("memory_bytes", sa.Double(), nullable=False),
        sa.Column("usable_memory_bytes", sa.Double(), nullable=False),
        sa.Column("memory_bytes_per_s", sa.Double(), nullable=False),
        sa.Column("dense_flops_per_s", JSON, nullable=False),
        sa.Column("link_bytes_per_s", sa.Double(), nullable=False),
        sa.Column("link_domain_gpus", INTEGER, nullable=False),
        sa.Column("pcie_bytes_per_s", sa.Double(), nullable=False),
        sa.Column("power_w", sa.Double()),
        sa.Column("spec_check", sa.Text(), nullable=False),
        sa.Column("fields_not_confirmed", JSON, nullable=False),
        sa.Column("released", sa.Date()),
        sa.Column("notes", sa.Text()),
        identity=("id",),
    )
    versioned(
        "provider",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("sells_gpu_hours", sa.Boolean(), nullable=False),
        sa.Column("sells_tokens", sa.Boolean(), nullable=False),
        identity=("name",),
    )
    versioned(
        "offer",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("gpu_id", sa.Text(), nullable=False),
        sa.Column("market", sa.Text(), nullable=False),
        sa.Column("instance_type", sa.Text()),
        sa.Column("gpus_per_instance", INTEGER),
        sa.Column("region", sa.Text()),
        sa.Column("basis", sa.Text(), nullable=False),
        sa.Column("excluded_reason", sa.Text()),
        sa.Column("notes", sa.Text()),
        identity=("id",),
    )
    versioned(
        "offer_price",
        sa.Column("offer_id", sa.Text(), nullable=False),
        sa.Column("first_day", sa.Date(), nullable=False),
        sa.Column("usd_per_gpu_hour", MONEY),
        sa.Column("source_id", sa.Text(), nullable=False),
        identity=("offer_id", "first_day"),
    )
    versioned(
        "api_price",
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("provider_model_id", sa.Text(), nullable=False),
        sa.Column("model_id", sa.Text()),
        sa.Column("observed", sa.Date()),
        sa.Column("input_usd_per_mtok", MONEY),
        sa.Column("cached_input_usd_per_mtok", MONEY),
        sa.Column("output_usd_per_mtok", MONEY),
        sa.Column("context_limit_tokens", INTEGER),
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.Column("notes", sa.Text()),
        identity=("provider", "provider_model_id", "observed", "source_id"),
        unique=False,
    )
    versioned(
        "judgement",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("unit", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("dated", sa.Date(), nullable=False),
        sa.Column("points", INTEGER),
        sa.Column("scatter_ratio", sa.Double()),
        sa.Column("reason", sa.Text()),
        sa.Column("source_id", sa.Text(), nullable=False),
        identity=("name", "scope", "dated"),
    )
    versioned(
        "dtype",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("value_bytes", sa.Double(), nullable=False),
        sa.Column("arithmetic", JSON, nullable=False),
        sa.Column("source_id", sa.Text(), nullable=False),
        identity=("id",),
    )
    versioned(
        "weight_plan",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("attention", sa.Text(), nullable=False),
        sa.Column("ffn", sa.Text(), nullable=False),
        sa.Column("experts", sa.Text(), nullable=False),
        sa.Column("embedding", sa.Text(), nullable=False),
        sa.Column("other", sa.Text(), nullable=False),
        identity=("id",),
    )
    versioned(
        "stack",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("memory_rule", sa.Text(), nullable=False),
        sa.Column("reserves_full_length", sa.Boolean(), nullable=False),
        sa.Column("window_rule", sa.Text(), nullable=False),
        sa.Column("kv_beside_quantised", sa.Text(), nullable=True),
        sa.Column("without_kernel", JSON, nullable=False),
        sa.Column("source_id", sa.Text(), nullable=False),
        identity=("id",),
    )
    versioned(
        "alias",
        sa.Column("entry_kind", sa.Text(), nullable=False),
        sa.Column("entry_id", sa.Text(), nullable=False),
        sa.Column("alias", sa.Text(), nullable=False),
        identity=("entry_kind", "entry_id", "alias"),
    )
    versioned(
        "fact_source",
        sa.Column("entry_kind", sa.Text(), nullable=False),
        sa.Column("entry_id", sa.Text(), nullable=False),
        sa.Column("field", sa.Text(), nullable=False),
        sa.Column("source_id", sa.Text(), nullable=False),
        identity=("entry_kind", "entry_id", "field"),
    )


def versioned(name: str, *columns: sa.Column[Any], identity: tuple[str, ...], unique: bool = True) -> None:
    """A table whose rows belong to a span of revisions, with an index over those that are current."""
    op.create_table(
        name,
        *columns,
        sa.Column("row_id", INTEGER, nullable=False),
        sa.Column("added_revision", INTEGER, nullable=False),
        sa.Column("retired_revision", INTEGER),
        sa.PrimaryKeyConstraint("row_id", name=f"pk_{name}"),
        sa.ForeignKeyConstraint(["added_revision"], ["revision.id"], name=f"fk_{name}_added_revision"),
        sa.ForeignKeyConstraint(["retired_revision"], ["revision.id"], name=f"fk_{name}_retired_revision"),
        sa.CheckConstraint("retired_revision > added_revision", name=f"ck_{name}_retired_later"),
    )
    current = sa.text("retired_revision IS NULL")
    op.create_index(
        f"ix_{name}_current",
        name,
        list(identity),
        unique=unique,
        postgresql_where=current,
        sqlite_where=current,
    )
