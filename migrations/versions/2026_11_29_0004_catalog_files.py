"""Table of the fingerprint of the catalog files that were read last.

Why: a service that starts again over the same files need not read them again.
Down: drops the table; the next start reads the files once more.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "catalog_files",
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("fingerprint", name="pk_catalog_files"),
    )


def downgrade() -> None:
    op.drop_table("catalog_files")
