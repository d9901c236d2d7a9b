"""The explorer in a real browser: prices, links, errors, downloads, reach."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from tests.browser.conftest import Visit

Enter = Callable[..., Visit]
CHARTS = ("memory", "curve", "concurrency", "wait", "roofline", "frontier", "prefix", "cards")
QUOTE = "?model=llama-3-70b&gpu=h100-sxm&ctx=4096"


def fetched(address: str, path: str) -> Any:
    with urlopen(f"{address}{path}") as response:  # noqa: S310 - the service of this test
        return json.load(response)


@pytest.mark.parametrize("size", ["desktop", "phone"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_page_shows_prices_and_charts_to_everybody_and_loads_nothing_from_elsewhere(
    visit: Enter, size: str, dark: bool
) -> None:
    window = visit(size, dark=dark)
    window.open("/")
    assert window.number("#price-input") < window.number("#price-output")
    for chart in CHARTS:
        assert window.page.locator(f"#{chart} svg[role=img][aria-label]").count() == 1
    assert window.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert window.violations() == []
    assert window.complaints == []
    assert window.elsewhere == []


def test_a_shared_link_shows_the_quote_of_the_service(visit: Enter, address: str) -> None:
    window = visit()
    window.open(f"/{QUOTE}")
    prices = fetched(address, f"/quote{QUOTE}")["prices"]
    for part in ("input", "cached_input", "output", "blended"):
        shown_prices = window.text(f"#price-{part}").replace(" to ", "\n").split("\n")
        for shown, name in zip(shown_prices, ("usd_per_mtok", "low", "high"), strict=True):
            assert float(shown.strip("$")) == pytest.approx(float(prices[part][name]), rel=1e-3)
    assert window.page.input_value("[name=ctx]") == "4096"


def test_what_is_typed_is_in_the_address_and_back_and_forward_work(visit: Enter) -> None:
    window = visit()
    window.open(f"/{QUOTE}")
    first = window.number("#price-output")
    window.asked("ctx", "2048")
    assert "ctx=2048" in window.page.url
    second = window.number("#price-output")
    assert second < first
    window.page.go_back()
    window.settle()
    assert window.page.input_value("[name=ctx]") == "4096"
    assert window.number("#price-output") == first
    window.page.go_forward()
    window.settle()
    assert window.number("#price-output") == second


def test_a_link_keeps_parameters_that_have_no_field(visit: Enter, address: str) -> None:
    window = visit()
    window.open(f"/{QUOTE}&utilization=0.5")
    half = fetched(address, f"/quote{QUOTE}&utilization=0.5")["prices"]["output"]["usd_per_mtok"]
    assert window.number("#price-output") == pytest.approx(float(half), rel=1e-3)
    window.asked("output", "256")
    assert "utilization=0.5" in window.page.url


def test_a_profile_stands_in_place_of_context_and_output(visit: Enter, address: str) -> None:
    window = visit()
    window.open("/?model=llama-3.1-70b&gpu=h100-sxm&profile=chat")
    price = fetched(address, "/quote?model=llama-3.1-70b&gpu=h100-sxm&profile=chat")["prices"]["output"]
    assert window.number("#price-output") == pytest.approx(float(price["usd_per_mtok"]), rel=1e-3)
    for chart in ("curve", "prefix"):
        assert window.page.locator(f"#{chart} svg[role=img]").count() == 1
    assert "saved of the bill" in window.text("figure:has(#prefix) .legend")
    assert "undefined" not in window.text("#charts")


def test_speculation_is_asked_for_in_the_form_and_said(visit: Enter, address: str) -> None:
    window = visit("phone")
    window.open("/?model=llama-3.1-70b&gpu=h100-sxm&ctx=8192")
    window.page.evaluate("document.querySelector('details').open = true")
    window.page.select_option("[name=speculation]", "draft-model")
    window.settle()
    assert "draft_model is missing" in window.text("#problem")
    window.asked("draft_model", "llama-3.2-1b")
    quote = fetched(address, f"/quote{window.page.evaluate('location.search')}")
    assert window.number("#price-output") == pytest.approx(
        float(quote["prices"]["output"]["usd_per_mtok"]), rel=1e-3
    )
    assert "proposed by llama-3.2-1b" in window.text("#said")
    assert window.violations() == []


def test_the_slider_moves_by_keyboard_and_the_price_follows(visit: Enter) -> None:
    window = visit()
    window.open(f"/{QUOTE}")
    before = window.number("#price-output")
    window.page.focus("[data-of=ctx]")
    for _ in range(10):
        window.page.keyboard.press("ArrowRight")
    window.settle()
    assert int(window.page.input_value("[name=ctx]")) > 4096
    assert window.number("#price-output") > before
    assert window.page.get_attribute("[data-of=ctx]", "aria-valuetext") == window.page.input_value(
        "[name=ctx]"
    )


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [("model", "llama-3-7b", "Nearest"), ("ctx", "900000", "8,192"), ("gpus", "1", "GB")],
)
def test_a_mistake_gets_the_services_sentence_beside_its_field(
    visit: Enter, name: str, value: str, words: str
) -> None:
    window = visit()
    window.open(f"/{QUOTE}")
    window.page.evaluate("document.querySelector('details').open = true")
    window.asked(name, value)
    assert words in window.text("#problem")
    assert not window.page.locator("#prices").is_visible()
    assert window.page.get_attribute(f"[name={name}]", "aria-invalid") == "true"
    assert window.violations() == []
    window.asked(name, {"model": "llama-3-70b", "ctx": "4096", "gpus": ""}[name])
    assert window.page.locator("#prices").is_visible()
    assert window.text("#problem") == ""


@pytest.mark.parametrize("chart", CHARTS)
def test_every_chart_downloads_as_picture_and_data(visit: Enter, chart: str, tmp_path: Path) -> None:
    window = visit()
    window.open(f"/{QUOTE}")
    heads = {"PNG": b"\x89PNG\r\n", "SVG": b"<svg", "CSV": b""}
    for kind, head in heads.items():
        with window.page.expect_download() as waiting:
            figure = window.page.locator("figure", has=window.page.locator(f"#{chart}"))
            figure.get_by_text(kind, exact=True).click()
        path = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(path)
        assert path.suffix == f".{kind.lower()}"
        assert path.read_bytes().startswith(head)
    lines = (tmp_path / f"{chart}.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) > 2
    assert len({line.count(",") for line in lines[:2]}) == 1
    drawn = (tmp_path / f"{chart}.svg").read_text(encoding="utf-8")
    for word in window.page.locator(f"figure:has(#{chart}) .legend li").all_inner_texts():
        assert word.split("\n")[-1] in drawn, "a picture that leaves the page has its legend"
    assert "prices of 2026-11-29" in drawn
    assert window.complaints == []


def test_copies_are_addresses_that_answer(visit: Enter, address: str) -> None:
    window = visit()
    window.open(f"/{QUOTE}")
    copied = {}
    for what in ("link", "curl", "formula"):
        window.page.click(f"#copy-{what}")
        copied[what] = window.page.evaluate("navigator.clipboard.readText()")
    assert copied["link"] == f"{address}/{QUOTE}"
    assert copied["curl"] == f"curl '{address}/quote{QUOTE}'"
    assert copied["formula"] == f'=VALUE(WEBSERVICE("{address}/quote.txt{QUOTE}&field=output"))'
    with urlopen(copied["formula"].split('"')[1]) as cell:  # noqa: S310 - the service of this test
        assert float(cell.read()) == pytest.approx(window.number("#price-output"), rel=1e-3)


def test_the_trace_of_each_number_is_one_click_away(visit: Enter) -> None:
    window = visit()
    window.open(f"/{QUOTE}")
    window.page.click("#trace-details summary")
    window.settle()
    assert "output_usd_per_mtok" in window.text("#trace")
    window.page.click("#variants-details summary")
    window.settle()
    assert "MQA" in window.text("#variants")
    assert window.violations() == []


IN_THE_PAGE = """async ctx => {
    const field = document.querySelector('[name=ctx]'), price = () => document.querySelector('#price-output').innerText;
    const before = price(), started = performance.now();
    const changed = new Promise(done => {
        const watcher = new MutationObserver(() => {
            if (price() !== before) { watcher.disconnect(); done(performance.now() - started); }
        });
        watcher.observe(document.querySelector('#prices'), { childList: true, subtree: true });
    });
    field.value = ctx;
    field.dispatchEvent(new Event('input', { bubbles: true }));
    return await changed;
}"""


def test_a_price_follows_its_field_within_a_tenth_of_a_second(visit: Enter) -> None:
    window = visit()
    window.open(f"/{QUOTE}")
    times_ms = []
    # Others may be at work on a build server: what counts is what the page and the service take where they are let.
    for ctx in range(4000, 3000, -50):
        times_ms.append(window.page.evaluate(IN_THE_PAGE, ctx))
        if times_ms[-1] < 100:
            break
        window.settle()
    assert min(times_ms) < 100, times_ms


def test_all_that_a_page_loads_is_small(visit: Enter) -> None:
    window = visit()
    window.open("/")
    sizes = window.page.evaluate(
        "performance.getEntriesByType('resource').filter(one => one.name.includes('/assets/'))"
        ".map(one => one.encodedBodySize)"
    )
    assert 0 < sum(sizes) < 500_000
