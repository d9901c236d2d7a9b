"""Tables of stored quotes.

Why: a quote in a contract or a budget has to read the same for ever, also after the catalog changed or the
service was upgraded, so its answer is kept as it was written, in every format.
Down: drops both tables; stored quotes are lost and cannot be made again to the byte.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

INTEGER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
INSTANT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "stored_quote",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("idempotency_key", sa.Text()),
        sa.Column("request_hash", sa.Text(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("gpu_id", sa.Text(), nullable=False),
        sa.Column("as_of", sa.Date(), nullable=False),
        sa.Column("catalog_revision", INTEGER, nullable=False),
        sa.Column("engine_version", sa.Text(), nullable=False),
        sa.Column("request_usd", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_stored_quote"),
        sa.UniqueConstraint("owner", "idempotency_key", name="uq_stored_quote_owner_idempotency_key"),
    )
    op.create_index("ix_stored_quote_owner_created_at", "stored_quote", ["owner", "created_at"])
    op.create_table(
        "stored_quote_format",
        sa.Column("quote_id", sa.Text(), nullable=False),
        sa.Column("suffix", sa.Text(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("quote_id", "suffix", name="pk_stored_quote_format"),
        sa.ForeignKeyConstraint(
            ["quote_id"], ["stored_quote.id"], name="fk_stored_quote_format_quote_id", ondelete="CASCADE"
        ),
    )


def downgrade() -> None:
    op.drop_table("stored_quote_format")
    op.drop_table("stored_quote")
