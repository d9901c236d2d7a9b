"""The pages' files: strict policy, small, unchanged third parties, nothing inline, nothing from elsewhere."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from costsvc.web.pages import ASSETS, POLICY, asset
from tests.docs.pages import ROOT

HTML = sorted(ASSETS.glob("*.html"))
VENDORED = (ASSETS / "vendor", ROOT / "tests" / "browser" / "vendor")


class Tags(HTMLParser):
    """Every tag with its attributes, and the text inside scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.inline: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem and data.strip():
            self.inline.append(data)


def tags(page: Path) -> Tags:
    parsed = Tags()
    parsed.feed(page.read_text(encoding="utf-8"))
    return parsed


@pytest.mark.parametrize("page", HTML, ids=lambda page: page.name)
def test_a_page_has_nothing_inline_and_nothing_from_elsewhere(page: Path) -> None:
    parsed = tags(page)
    assert parsed.inline == []
    for tag, attributes in parsed.found:
        assert not any(name.startswith("on") or name == "style" for name in attributes), tag
        loaded = attributes.get("src") or (attributes.get("href") if tag == "link" else None)
        if loaded:
            assert asset(loaded.removeprefix("/assets/")).plain


@pytest.mark.parametrize("page", HTML, ids=lambda page: page.name)
def test_a_page_is_fit_for_readers_of_the_screen(page: Path) -> None:
    found = tags(page).found
    assert ("html", {"lang": "en"}) in found
    assert [tag for tag, _ in found].count("h1") == 1
    assert any(tag == "meta" and attributes.get("name") == "viewport" for tag, attributes in found)


def test_the_policy_allows_no_inline_script_and_no_other_host() -> None:
    assert "unsafe" not in POLICY
    assert "http" not in POLICY
    assert "default-src 'none'" in POLICY
    assert "script-src 'self';" in POLICY


@pytest.mark.parametrize("folder", VENDORED, ids=["shipped", "for tests"])
def test_third_parties_are_named_with_their_version_and_licence(folder: Path) -> None:
    manifest = json.loads((folder / "vendor.json").read_text(encoding="utf-8"))
    assert {path.name for path in folder.glob("*.js")} == set(manifest)
    for name, entry in manifest.items():
        text = (folder / name).read_text(encoding="utf-8")[:500]
        assert re.search(rf"v{re.escape(entry['version'])}\b", text), name
        assert len((folder / entry["licence_file"]).read_text(encoding="utf-8")) > 500
        assert entry["integrity"].startswith("sha512-")


def test_what_the_explorer_loads_is_below_half_a_megabyte() -> None:
    loaded = [path.relative_to(ASSETS).as_posix() for path in ASSETS.rglob("*.js")]
    total_bytes = sum(len(asset(name).compressed) for name in (*loaded, "explorer.html", "style.css"))
    assert total_bytes < 500_000
