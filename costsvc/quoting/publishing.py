"""New revisions of the catalog, from files or a call, without losing what others wrote meanwhile."""

from collections.abc import Callable

from costsvc.db.entries import CatalogContent
from costsvc.db.repository import CatalogRepository, StoreResult
from costsvc.db.snapshot import Catalog
from costsvc.errors import Unavailable
from costsvc.quoting.posting import keeping_posted

Change = Callable[[Catalog], CatalogContent]


def publish(repository: CatalogRepository, change: Change, *, author: str, note: str) -> StoreResult:
    """Store the newest catalog as `change` makes it.

    Where another writer stored a revision between our reading and our writing, ours lacks its change: then
    the change is made once more, on that revision.
    """
    based_on = repository.newest_revision()
    if based_on is None:
        raise Unavailable("The database holds no catalog yet. Load one: `costsvc catalog load`.")
    while True:
        content = change(Catalog(repository.load(based_on), based_on))
        stored = repository.store(content, author=author, note=note)
        if stored.revision <= based_on + 1:
            return stored
        based_on = stored.revision - 1


def publish_files(
    repository: CatalogRepository, files: CatalogContent, *, author: str, note: str
) -> StoreResult:
    """Make the files the newest revision, with the prices that were posted since."""
    if repository.newest_revision() is None:
        return repository.store(files, author=author, note=note)
    return publish(repository, lambda stored: keeping_posted(files, stored.content), author=author, note=note)
