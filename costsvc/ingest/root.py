"""Where the catalog files are: known before any of them is read."""

from pathlib import Path

import costsvc
from costsvc.errors import InvalidCatalogFile


def catalog_root(setting: Path | None) -> Path:
    """The folder of the catalog: the one asked for, the checkout's, or the one shipped with the package.

    Raises
    ------
    InvalidCatalogFile
        The folder asked for does not exist, or there is none at all.
    """
    package = Path(costsvc.__file__).resolve().parent
    candidates = [setting] if setting is not None else [package.parent / "catalog", package / "_catalog"]
    for candidate in candidates:
        if (candidate / "sources.yaml").is_file():
            return candidate
    raise InvalidCatalogFile(str(candidates[-1]), "holds no catalog: sources.yaml is missing")
