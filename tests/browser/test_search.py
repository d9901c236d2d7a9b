"""Search as you type, by keyboard, by touch and for readers of the screen; and what the pages are to them."""

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from tests.browser.conftest import Visit

Enter = Callable[..., Visit]
QUOTE = "/?model=llama-3-70b&gpu=h100-sxm&ctx=4096"
MODEL = "[name=model]"
OPTIONS = "#model-list [role=option]"


def options(window: Visit) -> list[str]:
    found: list[str] = window.page.locator(OPTIONS).evaluate_all("list => list.map(one => one.dataset.id)")
    return found


def test_words_in_any_order_find_a_model_and_enter_takes_it(visit: Enter) -> None:
    window = visit()
    window.open(QUOTE)
    window.page.focus(MODEL)
    window.page.keyboard.type("70b llama")
    assert {"llama-3.1-70b", "llama-3.3-70b", "llama-2-70b"} <= set(options(window))
    assert "model=llama-3-70b&" in window.page.url, "half a name is no question"
    assert window.text("#problem") == ""
    assert window.page.get_attribute(MODEL, "aria-expanded") == "true"
    for _ in range(options(window).index("llama-3.3-70b")):
        window.page.keyboard.press("ArrowDown")
    active = window.page.get_attribute(MODEL, "aria-activedescendant")
    assert window.page.get_attribute(f"#{active}", "data-id") == "llama-3.3-70b"
    assert window.page.get_attribute(f"#{active}", "aria-selected") == "true"
    assert window.violations() == []
    window.page.keyboard.press("Enter")
    window.settle()
    assert window.page.input_value(MODEL) == "llama-3.3-70b"
    assert "model=llama-3.3-70b&" in window.page.url
    window.answered()
    assert not window.page.locator("#model-list").is_visible()


def test_escape_closes_the_list_and_what_was_typed_stays(visit: Enter) -> None:
    window = visit()
    window.open(QUOTE)
    window.page.focus(MODEL)
    window.page.keyboard.press("ArrowDown")
    assert len(options(window)) > 30
    window.page.keyboard.press("Escape")
    assert not window.page.locator("#model-list").is_visible()
    window.asked("model", "meta-llama/Meta-Llama-3-8B")
    assert window.text("#problem") == ""
    window.answered()
    assert "meta-llama%2FMeta-Llama-3-8B" in window.page.url


def test_a_touch_takes_an_option_and_the_list_stays_on_a_phone(visit: Enter) -> None:
    window = visit("phone", dark=True)
    window.open(QUOTE)
    window.page.tap("[name=gpu]")
    listed = window.page.locator("#gpu-list")
    assert listed.is_visible()
    assert window.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert window.violations() == []
    window.page.locator("#gpu-list [data-id=h200-sxm]").tap()
    window.settle()
    assert "gpu=h200-sxm" in window.page.url
    assert not listed.is_visible()


def tree(window: Visit) -> list[dict[str, Any]]:
    """What a screen reader is given: role, name and properties of everything not ignored."""
    session = window.page.context.new_cdp_session(window.page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    return [
        {
            "role": node.get("role", {}).get("value"),
            "name": node.get("name", {}).get("value", ""),
            **{one["name"]: one["value"].get("value") for one in node.get("properties", [])},
        }
        for node in nodes
        if not node["ignored"]
    ]


CONTROLS = (
    "button",
    "combobox",
    "textbox",
    "spinbutton",
    "slider",
    "link",
    "searchbox",
    "image",
    "region",
    "img",
)


@pytest.mark.parametrize("path", [QUOTE, "/launch", "/catalog?gpu=h100-sxm", "/accuracy"])
def test_everything_that_does_something_has_a_role_and_a_name(visit: Enter, path: str) -> None:
    window = visit()
    window.open(path)
    nodes = tree(window)
    assert [node for node in nodes if node["role"] in CONTROLS and not node["name"].strip()] == []
    headings = [node["level"] for node in nodes if node["role"] == "heading"]
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(headings))
    assert {"main", "navigation", "banner"} <= {node["role"] for node in nodes}
    assert any(node["role"] == "alert" or node.get("live") for node in nodes if node["role"] != "RootWebArea")


@pytest.mark.parametrize("path", [QUOTE, "/launch", "/catalog?gpu=h100-sxm", "/accuracy"])
@pytest.mark.parametrize("size", ["desktop", "phone"])
def test_every_chart_is_one_picture_with_a_name_and_its_numbers_in_a_table(
    visit: Enter, size: str, path: str
) -> None:
    window = visit(size, dark=size == "phone")
    window.open(path)
    assert window.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert window.violations() == []
    assert window.complaints == []
    window.page.evaluate("document.querySelectorAll('figure details').forEach(one => { one.open = true })")
    nodes = tree(window)
    pictures = [node["name"] for node in nodes if node["role"] in ("image", "img") and node["name"]]
    tables = [node["name"] for node in nodes if node["role"] == "table"]
    assert pictures
    for name in pictures:
        label = name.removesuffix(". Its numbers are in the table below it.")
        assert label != name
        assert any(table.startswith(label) for table in tables), (label, tables)
    cells = [node for node in nodes if node["role"] in ("cell", "gridcell", "rowheader", "columnheader")]
    assert len(cells) > 20


def test_the_keyboard_alone_reaches_everything_in_the_order_of_the_page(visit: Enter) -> None:
    window = visit()
    window.open(QUOTE)
    window.page.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
    seen: list[str] = []
    describe = """() => {
        const focused = document.activeElement;
        const name = focused.name || focused.id || focused.getAttribute('aria-label') || focused.textContent.trim();
        return [name, getComputedStyle(focused).outlineStyle];
    }"""
    for _ in range(80):
        window.page.keyboard.press("Tab")
        name, outline = window.page.evaluate(describe)
        if window.page.evaluate("document.activeElement === document.body") or name in seen[:1]:
            break
        seen.append(name)
        assert outline != "none", f"{name} has the focus and does not show it"
    order = ["Explorer", "model", "gpu", "ctx", "output", "copy-link", "copy-formula"]
    places = [seen.index(name) for name in order]
    assert places == sorted(places)
    assert seen[0] == "Skip to the answer"
    assert any(re.search("Download Roofline as PNG", name) for name in seen)


def test_the_skip_link_leads_past_the_form(visit: Enter) -> None:
    window = visit()
    window.open(QUOTE)
    window.page.keyboard.press("Tab")
    window.page.keyboard.press("Enter")
    assert window.page.evaluate("document.activeElement.id") == "answer"


def test_a_click_on_a_price_leads_to_its_line_of_the_trace(visit: Enter) -> None:
    window = visit()
    window.open(QUOTE)
    window.page.get_by_role("button", name="Why: where the price of output comes from").click()
    window.settle()
    marked = window.page.locator("#trace tr.marked")
    assert "output_usd_per_mtok" in marked.inner_text()
    assert marked.is_visible()
    shown = float(marked.locator("td").first.inner_text().split("\n")[-1])
    assert shown == pytest.approx(window.number("#price-output"), rel=1e-3)
    marked.get_by_role("link", name="request_usd").click()
    assert window.page.evaluate("document.querySelector(':target').innerText").startswith("request_usd")
    assert window.violations() == []
