"""Table of traffic profiles.

Why: profiles are part of the catalog, so that a quote may name one and a past quote finds it as it was.
Down: drops the table and what aliases and sources say of profiles. Shipped profiles are in `catalog/profiles`
and are loaded again; posted ones are lost.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

INTEGER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "profile",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("traffic", sa.Text(), nullable=False),
        sa.Column("notes", sa.Text()),
        sa.Column("row_id", INTEGER, nullable=False),
        sa.Column("added_revision", INTEGER, nullable=False),
        sa.Column("retired_revision", INTEGER),
        sa.PrimaryKeyConstraint("row_id", name="pk_profile"),
        sa.ForeignKeyConstraint(["added_revision"], ["revision.id"], name="fk_profile_added_revision"),
        sa.ForeignKeyConstraint(["retired_revision"], ["revision.id"], name="fk_profile_retired_revision"),
        sa.CheckConstraint("retired_revision > added_revision", name="ck_profile_retired_later"),
    )
    current = sa.text("retired_revision IS NULL")
    op.create_index(
        "ix_profile_current",
        "profile",
        ["id"],
        unique=True,
        postgresql_where=current,
        sqlite_where=current,
    )


def downgrade() -> None:
    op.execute("DELETE FROM alias WHERE entry_kind = 'profile'")
    op.execute("DELETE FROM fact_source WHERE entry_kind = 'profile'")
    op.drop_table("profile")
