"""The shipped catalog, read once."""

import pytest

from costsvc.db.entries import CatalogContent
from costsvc.db.snapshot import Catalog
from costsvc.ingest.files import catalog_root, read_catalog


@pytest.fixture(scope="session")
def content() -> CatalogContent:
    return read_catalog(catalog_root(None))


@pytest.fixture(scope="session")
def catalog(content: CatalogContent) -> Catalog:
    return Catalog(content, revision=None)
