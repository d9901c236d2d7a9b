"""New revisions of the catalog, from files or from a call."""

from collections.abc import Callable

from costsvc.db.entries import CatalogContent
from costsvc.db.repository import CatalogRepository, StoreResult
from costsvc.db.snapshot import Catalog
from costsvc.errors import Unavailable
from costsvc.quoting.posting import keeping_posted

Change = Callable[[Catalog], CatalogContent]


def publish(repository: CatalogRepository, change: Change, *, author: str, note: str) -> StoreResult:
    """Store the newest catalog as `change` makes it."""

    def changed(stored: CatalogContent | None) -> CatalogContent:
        if stored is None:
            raise Unavailable("The database holds no catalog yet. Load one: `costsvc catalog load`.")
        return change(Catalog(stored, None))

    return repository.store_changed(changed, author=author, note=note)


def publish_files(
    repository: CatalogRepository, files: CatalogContent, *, author: str, note: str, fingerprint: str = ""
) -> StoreResult:
    """Make the files the newest revision, beside the prices that were posted.

    `fingerprint` tells a later start whether these are still the files of its folder; empty: of no folder.
    """
    return repository.store_changed(
        lambda stored: files if stored is None else keeping_posted(files, stored),
        author=author,
        note=note,
        files_fingerprint=fingerprint,
    )
