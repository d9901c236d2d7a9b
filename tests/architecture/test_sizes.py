"""No file so long that nobody reads it whole."""

from pathlib import Path

import costsvc

PACKAGE = Path(costsvc.__file__).parent
MOST_LINES = 400


def test_no_file_of_the_package_is_long() -> None:
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in PACKAGE.rglob("*.py")}
    assert len(lengths) > 60
    assert {str(path.relative_to(PACKAGE)): n for path, n in lengths.items() if n > MOST_LINES} == {}


def test_every_file_of_the_package_says_what_it_is() -> None:
    silent = [
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if not path.read_text("utf-8").lstrip().startswith(('"""', 'r"""'))
    ]
    assert silent == []
