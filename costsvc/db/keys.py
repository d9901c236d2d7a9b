"""API keys: made once, shown once, and kept as a hash."""

import hashlib
import hmac
import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal, TypeAlias, get_args

from sqlalchemy import Engine, RowMapping, insert, select, update

from costsvc.db.audit import AuditEntry, record
from costsvc.db.engine import reading, writing
from costsvc.db.tables import ApiKeyRow
from costsvc.errors import NotAuthorized, NotInCatalog

Scope: TypeAlias = Literal["read", "quote", "catalog-write", "admin"]
# What a key may do includes what those before it may.
SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)

_PREFIX = "costsvc"
_ID_BYTES = 6
_SECRET_BYTES = 32
# Compared with where no key has the id, so that an unknown id takes as long as a wrong secret.
_NO_HASH = "0" * 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """What is known of a key: everything but its secret."""

    id: str
    scope: Scope
    label: str
    owner: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None

    def may(self, scope: Scope) -> bool:
        """Whether it opens what needs `scope`."""
        return SCOPES.index(self.scope) >= SCOPES.index(scope)


class KeyRepository:
    """Keys in the database."""

    def __init__(self, engine: Engine, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._engine = engine
        self._now = now

    def create(
        self, *, scope: Scope, label: str, owner: str, author: str, expires_at: datetime | None = None
    ) -> tuple[str, ApiKey]:
        """A new key and its record. The key itself can never be shown again."""
        secret = secrets.token_urlsafe(_SECRET_BYTES)
        key = ApiKey(
            id=secrets.token_hex(_ID_BYTES),
            scope=scope,
            label=label,
            owner=owner,
            created_at=self._now(),
            expires_at=expires_at,
            revoked_at=None,
        )
        with writing(self._engine) as connection:
            connection.execute(
                insert(ApiKeyRow).values(
                    id=key.id,
                    secret_hash=_hash(secret),
                    scope=scope,
                    label=label,
                    owner=owner,
                    created_at=key.created_at,
                    expires_at=expires_at,
                )
            )
            after = {"scope": scope, "label": label, "owner": owner}
            record(connection, self._act(author, "create key", key.id, after=after))
        return f"{_PREFIX}_{key.id}_{secret}", key

    def verify(self, text: str) -> ApiKey:
        """The record of a key that is valid now.

        Raises
        ------
        NotAuthorized
            The key is unknown, or it is known and has expired or was revoked.
        """
        _, _, rest = text.strip().partition("_")
        id, _, secret = rest.partition("_")
        with reading(self._engine) as connection:
            query = select(*ApiKeyRow.__table__.columns).where(ApiKeyRow.id == id)
            found = connection.execute(query).mappings().one_or_none()
        # A secret of 256 random bits cannot be guessed from its hash, so a fast hash is enough.
        matches = hmac.compare_digest(_hash(secret), found["secret_hash"] if found else _NO_HASH)
        if found is None or not matches:
            raise NotAuthorized("This API key is not known. Make one with `costsvc keys create`.")
        key = _key(found)
        if key.revoked_at is not None:
            raise NotAuthorized(
                f"API key {key.id} was revoked on {key.revoked_at:%Y-%m-%d}. Use another one."
            )
        if key.expires_at is not None and key.expires_at <= self._now():
            raise NotAuthorized(f"API key {key.id} expired on {key.expires_at:%Y-%m-%d}. Make a new one.")
        return key

    def records(self, ids: Collection[str]) -> dict[str, ApiKey]:
        """The records of keys by id, without those that there are not."""
        query = select(*ApiKeyRow.__table__.columns).where(ApiKeyRow.id.in_(ids))
        with reading(self._engine) as connection:
            return {row["id"]: _key(row) for row in connection.execute(query).mappings()}

    def revoke(self, id: str, *, author: str) -> None:
        """End a key at once; to end it again changes nothing.

        Raises
        ------
        NotInCatalog
            No key has this id.
        """
        with writing(self._engine) as connection:
            ids = connection.scalars(select(ApiKeyRow.id)).all()
            if id not in ids:
                raise NotInCatalog("API key", id, [])
            ended = connection.execute(
                update(ApiKeyRow)
                .where(ApiKeyRow.id == id, ApiKeyRow.revoked_at.is_(None))
                .values(revoked_at=self._now())
            )
            if ended.rowcount:
                record(connection, self._act(author, "revoke key", id))

    def listed(self) -> tuple[ApiKey, ...]:
        """Every key ever made, the oldest first."""
        query = select(*ApiKeyRow.__table__.columns).order_by(ApiKeyRow.created_at, ApiKeyRow.id)
        with reading(self._engine) as connection:
            return tuple(_key(row) for row in connection.execute(query).mappings())

    def _act(self, author: str, action: str, id: str, after: Mapping[str, str] | None = None) -> AuditEntry:
        return AuditEntry(at=self._now(), actor=author, action=action, subject=f"key {id}", after=after)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _key(row: RowMapping) -> ApiKey:
    return ApiKey(**{name: value for name, value in row.items() if name != "secret_hash"})
