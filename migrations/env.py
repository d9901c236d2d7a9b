"""Runs migrations on the connection it is handed; `costsvc.db.migrate` opens, locks and commits it."""

from alembic import context
from sqlalchemy import Connection

from costsvc.db import tables


def run(connection: Connection) -> None:
    """Batch mode, because SQLite changes a column only by copying its table."""
    metadata = tables.RevisionRow.metadata
    context.configure(connection=connection, target_metadata=metadata, render_as_batch=True)
    with context.begin_transaction():
        context.run_migrations()


run(context.config.attributes["connection"])
