"""The shipped catalog, for tests that check the engine on real models."""

import pytest

from costsvc.db.snapshot import Catalog
from tests.engine.shapes import shipped


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return shipped()
