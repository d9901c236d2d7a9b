"""Table of the rates of currencies.

Why: a quote in another currency names the rate, its day and its source, and reproduces by revision as prices do.
Down: drops the table; the rates are in the catalog's files and are loaded again.
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

INTEGER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MONEY = sa.Numeric().with_variant(sa.Text(), "sqlite")
CURRENT = sa.text("retired_revision IS NULL")
REVISION = "revision.id"


def upgrade() -> None:
    op.create_table(
        "fx_rate",
        sa.Column("row_id", INTEGER, nullable=False),
        sa.Column("added_revision", INTEGER, nullable=False),
        sa.Column("retired_revision", INTEGER),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("first_day", sa.Date(), nullable=False),
        sa.Column("units_per_usd", MONEY, nullable=False),
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.CheckConstraint("retired_revision > added_revision", name="ck_fx_rate_retired_later"),
        sa.ForeignKeyConstraint(["added_revision"], [REVISION], name="fk_fx_rate_added_revision"),
        sa.ForeignKeyConstraint(["retired_revision"], [REVISION], name="fk_fx_rate_retired_revision"),
        sa.PrimaryKeyConstraint("row_id", name="pk_fx_rate"),
    )
    op.create_index(
        "ix_fx_rate_current",
        "fx_rate",
        ["currency", "first_day"],
        unique=True,
        postgresql_where=CURRENT,
        sqlite_where=CURRENT,
    )


def downgrade() -> None:
    op.drop_table("fx_rate")
