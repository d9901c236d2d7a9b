"""Tables of negotiated prices, and which stored quotes were made with them.

Why: what an owner negotiated is seen by that owner's keys alone, so it stands apart from the catalog and has
revisions of its own.
Down: drops the tables; negotiated prices are lost, and stored quotes made with them are as readable to an
admin key as any other.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

INTEGER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
INSTANT = sa.DateTime(timezone=True)
CURRENT = sa.text("retired_number IS NULL")


def upgrade() -> None:
    op.create_table(
        "private_revision",
        sa.Column("id", INTEGER, nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("number", INTEGER, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_private_revision"),
        sa.UniqueConstraint("owner", "number", name="uq_private_revision_owner_number"),
    )
    op.create_table(
        "private_offer",
        sa.Column("row_id", INTEGER, nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("offer_id", sa.Text(), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.Column("added_number", INTEGER, nullable=False),
        sa.Column("retired_number", INTEGER),
        sa.CheckConstraint("retired_number > added_number", name="ck_private_offer_retired_later"),
        sa.PrimaryKeyConstraint("row_id", name="pk_private_offer"),
    )
    op.create_index(
        "ix_private_offer_current",
        "private_offer",
        ["owner", "offer_id"],
        unique=True,
        postgresql_where=CURRENT,
        sqlite_where=CURRENT,
    )
    op.add_column("stored_quote", sa.Column("private_revision", INTEGER))


def downgrade() -> None:
    op.drop_column("stored_quote", "private_revision")
    op.drop_table("private_offer")
    op.drop_table("private_revision")
