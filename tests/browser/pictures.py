"""The pictures of the README. `make pictures` takes them anew, with the prices of the tests' day."""

import shutil
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Final

from PIL import Image
from playwright.sync_api import sync_playwright

from tests.browser.service import AT_REST, PATIENCE_S, serving
from tests.docs.pages import ROOT

PICTURES: Final = ROOT / "docs" / "pictures"
# Name, page, and what of it is the last to be seen.
TAKEN: Final = (
    ("explorer", "/?model=llama-3.1-70b&gpu=h100-sxm&ctx=8192", "figure:has(#wait)"),
    ("launch-check", "/launch?model=llama-3.1-70b&gpu=h100-sxm&ctx=131072&users=5000", ".beside"),
)
WIDTH: Final = 1280
HEIGHT: Final = 900
EDGE: Final = 12
# Pixels of the picture to one of the page, so that text is sharp; few colours, so that the file is small.
SCALE: Final = 2
COLOURS: Final = 128


def main() -> None:
    """Take every picture."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        with serving(Path(folder) / "costsvc.db") as address:
            for name, path, last in TAKEN:
                page = browser.new_page(
                    viewport={"width": WIDTH, "height": HEIGHT},
                    color_scheme="light",
                    device_scale_factor=SCALE,
                )
                page.goto(f"{address}{path}")
                page.wait_for_timeout(50)
                page.wait_for_function(AT_REST, timeout=PATIENCE_S * 1000)
                taken = Image.open(BytesIO(page.screenshot(full_page=True)))
                bottom = page.evaluate(
                    "last => document.querySelector(last).getBoundingClientRect().bottom", last
                )
                seen = taken.crop((0, 0, taken.width, round(SCALE * (bottom + EDGE))))
                small = seen.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
                small.save(PICTURES / f"{name}.png", optimize=True)
        browser.close()


if __name__ == "__main__":
    main()
