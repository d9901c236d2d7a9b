"""Indexes of prices by revision and by offer.

Why: a replica reads of a new revision what it changed, without looking at a million prices.
Down: drops the indexes; refreshing takes longer.
"""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

COLUMNS = ("added_revision", "retired_revision", "offer_id")


def upgrade() -> None:
    for column in COLUMNS:
        op.create_index(f"ix_offer_price_{column}", "offer_price", [column])


def downgrade() -> None:
    for column in COLUMNS:
        op.drop_index(f"ix_offer_price_{column}", "offer_price")
