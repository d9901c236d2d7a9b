"""The pictures of docs/spreadsheets.md: the audit workbook as LibreOffice shows it, with the prices of the tests' day.

`make pictures` takes them anew. It needs LibreOffice and poppler-utils.
"""

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from costsvc.quoting.audit.workbook import audit_workbook
from costsvc.quoting.request import parse_request
from tests.api.conftest import TODAY
from tests.browser.service import serving
from tests.docs.pages import ROOT
from tests.engine.shapes import shipped
from tests.spreadsheets.conftest import office_running

PICTURES: Final = ROOT / "docs" / "pictures"
ASKED: Final = {"model": "llama-3-70b", "gpu": "h100", "ctx": 8192}
DOTS_PER_INCH: Final = 80
# Picture → words that its page of the printed workbook begins with.
SHEETS: Final = {"audit-workbook": "llama-3-70b on", "sensitivity": "Blended price"}


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main() -> None:
    """Print the workbook, and keep the pages that are shown."""
    with TemporaryDirectory() as folder:
        book, printed = Path(folder, "quote.xlsx"), str(Path(folder, "quote.pdf"))
        book.write_bytes(audit_workbook(shipped(), parse_request(ASKED), TODAY))
        profile = f"-env:UserInstallation=file://{folder}/profile"
        run("soffice", profile, "--headless", "--convert-to", "pdf", "--outdir", folder, str(book))
        pages = run("pdftotext", "-layout", printed, "-").split("\f")
        for name, words in SHEETS.items():
            page = next(number for number, text in enumerate(pages, 1) if text.strip().startswith(words))
            only = ("-f", str(page), "-l", str(page), "-r", str(DOTS_PER_INCH), "-singlefile", "-png")
            run("pdftoppm", *only, printed, str(PICTURES / name))
        with (
            serving(Path(folder, "costsvc.db")) as address,
            office_running("en-US", Path(folder, "pulled")) as act,
        ):
            asking = {"open": f"{address}/template.xlsx", "sheet": "Prices", "print": printed}
            act([asking])
        top = ("-r", "150", "-x", "100", "-y", "90", "-W", "1560", "-H", "180", "-singlefile", "-png")
        run("pdftoppm", *top, printed, str(PICTURES / "template"))


if __name__ == "__main__":
    main()
