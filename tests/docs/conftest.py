"""The shipped catalog, read once."""

import pytest

from costsvc.db.snapshot import Catalog
from tests.docs.refresh import shipped_catalog


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return shipped_catalog()
