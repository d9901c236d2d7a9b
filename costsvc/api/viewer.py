"""Through whose eyes a read sees the catalog: everybody's, or those of the owner of the key that is shown."""

from typing import Any

from litestar import Request
from litestar.concurrency import sync_to_thread
from litestar.types import Scope

from costsvc.api.auth import key_of, owner_of
from costsvc.api.service import Service
from costsvc.db.snapshot import Catalog
from costsvc.errors import InvalidRequest
from costsvc.quoting.request import QuoteRequest


def newest_for(scope: Scope, service: Service) -> Catalog:
    """The newest catalog as who asks sees it."""
    key = key_of(scope)
    return service.catalog if key is None else service.snapshots.seen_by(owner_of(key))


async def catalog_for(
    request: Request[Any, Any, Any], service: Service, wanted: QuoteRequest | None = None
) -> Catalog:
    """The catalog that answers a request, with what the key's owner negotiated where a key is shown.

    The door has verified the key: one that is not valid never gets here.

    Parameters
    ----------
    wanted : QuoteRequest, optional
        Its `revision` and `private_revision` are taken; absent: the newest.

    Raises
    ------
    InvalidRequest
        A `private_revision` without a key.
    NotInCatalog, Unavailable
        There is no such revision, or it cannot be read now.
    """
    revision = None if wanted is None else wanted.revision
    private_revision = None if wanted is None else wanted.private_revision
    if private_revision is None and revision in (None, service.catalog.revision):
        return newest_for(request.scope, service)
    # What is older may have to be read from the database, which must not keep other requests waiting.
    key = key_of(request.scope)
    if key is None:
        return await _of_everybody(service, revision, private_revision)
    return await sync_to_thread(service.snapshots.seen_by, owner_of(key), revision, private_revision)


async def _of_everybody(service: Service, revision: int | None, private_revision: int | None) -> Catalog:
    if private_revision is not None:
        raise InvalidRequest(
            f"private_revision is {private_revision}, but no key is shown, and nobody else sees what an owner "
            "negotiated. Show the owner's key, or leave private_revision away.",
            field="private_revision",
        )
    return await sync_to_thread(service.snapshots.at, revision)
