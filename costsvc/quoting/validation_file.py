"""The figures of the last validation as they lie in a catalog: read without what computes them."""

import json
from pathlib import Path

from costsvc.quoting.answer.plain import Section

VALIDATION = "fit/validation.json"


def read_validation(root: Path) -> Section | None:
    """The figures that the last validation wrote into a catalog folder."""
    path = root / VALIDATION
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
