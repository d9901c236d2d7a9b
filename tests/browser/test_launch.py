"""The launch check and the catalog in a real browser."""

import json
import re
from collections.abc import Callable
from urllib.request import urlopen

import pytest

from tests.browser.conftest import Visit

Enter = Callable[..., Visit]
FEATURE = "?model=llama-3.1-8b&gpu=h100-sxm&ctx=65536&users=500"


@pytest.mark.parametrize("size", ["desktop", "phone"])
def test_the_report_says_what_the_service_says(visit: Enter, address: str, size: str) -> None:
    window = visit(size)
    window.open(f"/launch{FEATURE}")
    window.answered()
    with urlopen(f"{address}/launch-check{FEATURE}") as response:  # noqa: S310 - the service of this test
        answer = json.load(response)
    assert window.text("#verdict") == answer["verdict"]["sentence"]
    assert window.page.locator("#levers tbody tr").count() == len(answer["levers"])
    assert window.page.locator("#cliffs tbody tr").count() == len(answer["cliffs"])
    assert window.page.locator("#curve svg").count() > 0
    assert window.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert window.violations() == []
    assert window.complaints == []
    assert window.elsewhere == []


@pytest.mark.parametrize(
    "asked",
    [
        FEATURE,
        "?model=llama-3.1-70b&gpu=h100-sxm&ctx=65536&users=5000&kv=fp8",
        "?model=llama-3.1-70b&gpu=h100-sxm&profile=agent-tools&users=300",
        "?model=deepseek-v3&gpu=any&ctx=131072&users=5000&today_ctx=2048",
    ],
)
def test_the_report_prints_on_one_page(visit: Enter, asked: str) -> None:
    window = visit()
    window.open(f"/launch{asked}")
    window.answered()
    pages = re.findall(rb"/Type\s*/Page\b(?!s)", window.page.pdf(format="A4"))
    assert len(pages) == 1


def test_a_profile_is_checked_and_what_its_prefixes_save_is_said(visit: Enter) -> None:
    window = visit("phone", dark=True)
    window.open("/launch?model=llama-3.1-70b&gpu=h100-sxm&profile=rag&users=300")
    window.answered()
    assert "300 users" in window.text("#verdict")
    assert "found again" in window.text("#prefixes")
    assert "rope scaling begins" in window.text("#charts .legend")
    assert window.violations() == []
    assert window.complaints == []
    window.page.click("#to-quote")
    window.settle()
    assert window.page.input_value("[name=profile]") == "rag"
    assert window.number("#price-output") > 0


def test_what_does_not_fit_is_said_and_nothing_is_made_up(visit: Enter) -> None:
    window = visit()
    window.open("/launch?model=llama-3-8b&gpu=h100-sxm&ctx=900000&users=5")
    assert "8,192" in window.text("#verdict")
    assert not window.page.locator("#sides").is_visible()
    window.asked("users", "")
    assert "users or rps" in window.text("#problem")
    assert window.complaints == [] or all("status of 400" in said for said in window.complaints)


def test_the_explorer_leads_to_a_check_of_its_quote(visit: Enter) -> None:
    window = visit()
    window.open("/?model=llama-3.1-8b&gpu=h100-sxm&ctx=16384")
    window.page.click("#to-launch")
    window.settle()
    assert "16,384 tokens" in window.text("#verdict")


def test_the_catalog_is_searched_and_an_entry_shows_its_sources_and_history(visit: Enter) -> None:
    window = visit()
    window.open("/catalog")
    window.asked("q", "gb200")
    assert 0 < window.page.locator("#gpu-list tbody tr").count() < 5
    assert window.violations() == []
    window.open("/catalog?gpu=h100-sxm")
    assert window.page.locator("#history svg path, #history svg circle").count() > 2
    assert window.page.locator("#offers svg circle").count() > 20
    assert "memory_gib" in window.text("#entry")
    window.page.get_by_role("link", name="memory_gib: the source of memory_bytes").click()
    assert "memory_gib" in window.page.evaluate("document.querySelector(':target').innerText")
    assert window.violations() == []
    window.open("/catalog?model=llama-3.1-70b")
    assert "max_context_tokens" in window.text("#entry")
    assert window.page.locator("a[href^='/?model=llama-3.1-70b']").count() == 1
    assert window.complaints == []


def test_the_accuracy_page_says_what_the_service_says(visit: Enter, address: str) -> None:
    window = visit()
    window.open("/accuracy")
    with urlopen(f"{address}/validation") as response:  # noqa: S310 - the service of this test
        figures = json.load(response)
    assert f"{figures['points']:,} points" in window.text("#bands")
    assert window.page.locator("#held-out tbody tr").count() == len(figures["held_out"])
    for drawn in ("predicted", "ratios"):
        assert window.page.locator(f"#{drawn} svg[role=img]").count() == 1
    for kind in figures["held_out_regimes"]:
        assert window.page.locator(f"#by-{kind} svg[role=img]").count() == 1
    assert window.violations() == []
    assert window.complaints == []


def test_an_unknown_entry_gets_the_services_sentence(visit: Enter) -> None:
    window = visit()
    window.open("/catalog?gpu=h101")
    assert "h100" in window.text("#problem")
