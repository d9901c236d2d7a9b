"""The pages in a real Chromium, over a service of their own. Where there is none, these tests are skipped.

`COSTSVC_TEST_CHROMIUM` names another browser than the `chromium` of the path.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.browser.service import AT_REST, PATIENCE_S, serving

VENDOR: Final = Path(__file__).parent / "vendor"
SIZES: Final = {"desktop": (1280, 900), "phone": (390, 844)}
ANSWERED: Final = "() => document.querySelector('[data-asked]')?.dataset.asked === location.search"


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the service listens."""
    with serving(tmp_path_factory.mktemp("browser") / "costsvc.db") as address:
        yield address


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests."""
    path = os.environ.get("COSTSVC_TEST_CHROMIUM") or shutil.which("chromium")
    if path is None:
        pytest.skip("No chromium on the path; COSTSVC_TEST_CHROMIUM may name one.")
    with sync_playwright() as playwright:
        # As root, which build servers run as, Chromium has no sandbox.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@dataclass
class Visit:
    """A page of the service, what it complained of, and where else it wanted to go."""

    page: Page
    address: str
    complaints: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def open(self, path: str) -> None:
        """Go to a page and wait until its answer is there."""
        self.page.goto(f"{self.address}{path}")
        self.settle()

    def settle(self) -> None:
        """Wait until nothing more is fetched or drawn."""
        self.page.wait_for_timeout(50)
        self.page.wait_for_function(AT_REST, timeout=PATIENCE_S * 1000)

    def answered(self) -> None:
        """Wait until the answer shown is that of the address."""
        self.page.wait_for_function(ANSWERED, timeout=PATIENCE_S * 1000)

    def text(self, selector: str) -> str:
        """What an element says."""
        return self.page.locator(selector).inner_text()

    def number(self, selector: str) -> float:
        """The first price that an element shows. [USD]"""
        return float(self.text(selector).split()[0].strip("$").replace(",", ""))

    def asked(self, name: str, value: str) -> None:
        """Type into a field and leave it."""
        self.page.fill(f"[name={name}]", value)
        self.page.locator(f"[name={name}]").blur()
        self.settle()

    def violations(self) -> list[Any]:
        """What axe finds serious or critical."""
        script = (VENDOR / "axe.min.js").read_text(encoding="utf-8")
        run = "axe.run().then(found => JSON.stringify(found.violations))"
        # By the debugger: the page's own policy allows no script that it did not load.
        answer = self.page.context.new_cdp_session(self.page).send(
            "Runtime.evaluate", {"expression": f"{script};{run}", "awaitPromise": True, "returnByValue": True}
        )
        found = json.loads(answer["result"]["value"])
        return [
            (one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")
        ]


@pytest.fixture
def visit(browser: Browser, address: str) -> Iterator[Callable[..., Visit]]:
    """Opens windows: `visit("phone", dark=True)`."""
    contexts: list[BrowserContext] = []

    def enter(size: str = "desktop", *, dark: bool = False) -> Visit:
        width, height = SIZES[size]
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            has_touch=size == "phone",
            permissions=["clipboard-read", "clipboard-write"],
        )
        contexts.append(context)
        visit = Visit(context.new_page(), address)
        visit.page.on(
            "console",
            lambda said: visit.complaints.append(said.text) if said.type in ("error", "warning") else None,
        )
        visit.page.on("pageerror", lambda error: visit.complaints.append(str(error)))
        visit.page.on(
            "request",
            lambda asked: (
                None if asked.url.startswith((address, "blob:")) else visit.elsewhere.append(asked.url)
            ),
        )
        return visit

    yield enter
    for context in contexts:
        context.close()
