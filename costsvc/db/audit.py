"""Who did what when. A change and its record are one transaction, so neither is there without the other."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Engine, insert, select

from costsvc.db.engine import reading
from costsvc.db.tables import AuditRow


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One act. `before` and `after` are what it changed; None where there was or is nothing."""

    at: datetime
    actor: str
    action: str
    subject: str
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None


def record(connection: Connection, entry: AuditEntry) -> None:
    """Write an act into the transaction that performs it."""
    connection.execute(
        insert(AuditRow).values(
            at=entry.at,
            actor=entry.actor,
            action=entry.action,
            subject=entry.subject,
            before=None if entry.before is None else dict(entry.before),
            after=None if entry.after is None else dict(entry.after),
        )
    )


def audit_entries(engine: Engine, *, limit: int = 100) -> tuple[AuditEntry, ...]:
    """The newest acts first."""
    query = select(
        AuditRow.at, AuditRow.actor, AuditRow.action, AuditRow.subject, AuditRow.before, AuditRow.after
    )
    with reading(engine) as connection:
        found = connection.execute(query.order_by(AuditRow.id.desc()).limit(limit))
        return tuple(AuditEntry(**row) for row in found.mappings())
