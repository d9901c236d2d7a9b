"""The pictures of the README. `make pictures` takes them anew, with the prices of the tests' day."""

import shutil
import tempfile
from pathlib import Path
from typing import Final

from playwright.sync_api import sync_playwright

from tests.browser.service import AT_REST, PATIENCE_S, serving
from tests.docs.pages import ROOT

PICTURES: Final = ROOT / "docs" / "pictures"
# Name, page and what of it, top down. [px]
TAKEN: Final = (
    ("explorer", "/?model=llama-3.1-70b&gpu=h100-sxm&ctx=8192", 980),
    ("launch-check", "/launch?model=llama-3.1-70b&gpu=h100-sxm&ctx=131072&users=5000", 1050),
)
WIDTH: Final = 1200


def main() -> None:
    """Take every picture."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        with serving(Path(folder) / "costsvc.db") as address:
            for name, path, height in TAKEN:
                page = browser.new_page(viewport={"width": WIDTH, "height": height}, color_scheme="light")
                page.goto(f"{address}{path}")
                page.wait_for_timeout(50)
                page.wait_for_function(AT_REST, timeout=PATIENCE_S * 1000)
                page.screenshot(path=PICTURES / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
