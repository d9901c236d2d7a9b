"""What goes wrong on a page: in the service's words, and with ways out that work."""

from collections.abc import Callable

import pytest

from tests.browser.conftest import Visit

Enter = Callable[..., Visit]
BASE = "model=llama-3-70b&gpu=h100-sxm"


@pytest.mark.parametrize(
    ("path", "way", "then"),
    [
        ("/?model=llama-3-7b&gpu=h100-sxm&ctx=4096", "Use llama-3-8b", "model=llama-3-8b"),
        (f"/?{BASE}&ctx=900000", "Lower the context to 8,192", "ctx=8192"),
        (f"/?{BASE}&ctx=4096&gpus=1", "Leave GPUs per replica open", "ctx=4096"),
        (f"/?{BASE}&ctx=4096&outptu=9", "Leave outptu out", "ctx=4096"),
        (f"/?{BASE}&ctx=4096&slo=fast", "Leave Latency open", "ctx=4096"),
        (
            "/launch?model=llama-3-8b&gpu=h100-sxm&ctx=900000&users=5",
            "Lower the context to 8,192",
            "ctx=8192",
        ),
        ("/launch?model=llama-3-8b&gpu=h101&ctx=8000&users=5", "Use h100-sxm", "gpu=h100-sxm"),
    ],
)
def test_a_way_out_leads_out(visit: Enter, path: str, way: str, then: str) -> None:
    window = visit("phone")
    window.open(path)
    shown = window.page.locator("#problem")
    assert shown.is_visible()
    assert window.violations() == []
    shown.get_by_text(way, exact=True).click()
    window.settle()
    assert not shown.is_visible()
    assert then in window.page.url
    assert window.page.locator("#price-output, #sides table").first.is_visible()
    window.page.go_back()
    window.settle()
    assert shown.is_visible()


@pytest.mark.parametrize(
    "wrong", ["ctx=abc", "ctx=4096&output=abc", "ctx=4096&slo=foo", "ctx=4096&as_of=someday"]
)
def test_what_a_field_cannot_show_is_refused_not_dropped(visit: Enter, wrong: str) -> None:
    window = visit()
    window.open(f"/?{BASE}&{wrong}")
    name, _, value = wrong.rpartition("&")[2].partition("=")
    assert name in window.text("#problem")
    assert value in window.text("#problem")
    assert window.page.get_attribute(f"[name={name}]", "aria-invalid") == "true"
    window.asked("ctx", "4096")
    if name == "ctx":
        assert window.number("#price-output") > 0


def test_an_own_price_is_asked_for_where_there_is_none(visit: Enter) -> None:
    window = visit()
    window.open("/?model=llama-3-70b&gpu=gb200&ctx=4096")
    window.page.get_by_role("button", name="Give your own price").click()
    assert window.page.evaluate("document.activeElement.name") == "price_usd_per_gpu_hour"
    window.asked("price_usd_per_gpu_hour", "5")
    assert window.number("#price-output") > 0


def test_a_service_that_is_gone_is_said_and_tried_again(visit: Enter) -> None:
    window = visit()
    window.open(f"/?{BASE}&ctx=4096")
    window.page.route("**/quote?**", lambda route: route.abort())
    window.asked("ctx", "2048")
    assert "did not answer" in window.text("#problem")
    window.page.unroute("**/quote?**")
    window.page.get_by_role("button", name="Try again").click()
    window.settle()
    assert window.text("#problem") == ""
    assert window.number("#price-output") > 0


def test_an_unknown_entry_of_the_catalog_leads_back_to_it(visit: Enter) -> None:
    window = visit()
    window.open("/catalog?gpu=h101")
    assert "h100" in window.text("#problem")
    window.page.locator("#problem").get_by_text("Back").click()
    window.settle()
    assert window.page.locator("#gpu-list tbody tr").count() > 50
