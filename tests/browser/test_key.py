"""A service that requires keys: asked for once, kept in the tab alone, sent in a header, never in an address."""

from collections.abc import Callable, Iterator

import pytest

from costsvc.db.engine import make_engine
from costsvc.db.keys import KeyRepository
from tests.browser.conftest import Visit
from tests.browser.service import serving

Enter = Callable[..., Visit]


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address of a service that answers to keys alone, and a key of it."""
    database = tmp_path_factory.mktemp("locked") / "costsvc.db"
    with serving(database, keys="required") as address:
        engine = make_engine(f"sqlite:///{database}")
        key, _ = KeyRepository(engine).create(scope="read", label="pages", owner="finance", author="tests")
        engine.dispose()
        yield address, key


def enter(visit: Enter, locked: tuple[str, str]) -> tuple[Visit, str, list[str]]:
    window = visit()
    address, key = locked
    window.address = address
    asked: list[str] = []
    window.page.on("request", lambda request: asked.append(request.url))
    return window, key, asked


@pytest.mark.parametrize(
    "path", ["/?model=llama-3-8b&gpu=h100-sxm&ctx=4096", "/launch", "/catalog", "/accuracy"]
)
def test_a_key_is_asked_for_and_opens_the_page(visit: Enter, locked: tuple[str, str], path: str) -> None:
    window, key, asked = enter(visit, locked)
    window.open(path)
    assert "A key is needed" in window.text("#problem")
    assert window.violations() == []
    window.page.fill("[name=key]", key)
    with window.page.expect_navigation():
        window.page.keyboard.press("Enter")
    window.settle()
    assert window.text("#problem") == ""
    assert window.page.locator(
        "#price-output, #sides table, #gpu-list table, #held-out table"
    ).first.is_visible()
    assert "With your key" in window.text("#key")
    assert not any(key in url for url in asked)
    assert key not in window.page.url
    kept = window.page.evaluate(
        "[JSON.stringify({...localStorage}), document.cookie, document.body.innerHTML]"
    )
    assert not any(key in text for text in kept)
    assert [said for said in window.complaints if "401" not in said] == []
    assert [url for url in window.elsewhere if not url.startswith(locked[0])] == []
    with window.page.expect_navigation():
        window.page.get_by_text("Forget it").click()
    window.settle()
    assert "A key is needed" in window.text("#problem")
    assert window.page.evaluate("sessionStorage.length") == 0


def test_a_wrong_key_is_said_and_another_can_be_given(visit: Enter, locked: tuple[str, str]) -> None:
    window, key, _ = enter(visit, locked)
    window.open("/?model=llama-3-8b&gpu=h100-sxm&ctx=4096")
    for wrong in ("nonsense", f"{key}x"):
        window.page.fill("[name=key]", wrong)
        with window.page.expect_navigation():
            window.page.keyboard.press("Enter")
        window.settle()
        assert "not known" in window.text("#problem")
    window.page.fill("[name=key]", key)
    with window.page.expect_navigation():
        window.page.keyboard.press("Enter")
    window.settle()
    assert window.number("#price-output") > 0


def test_what_is_copied_names_a_place_for_the_key_and_not_the_key(
    visit: Enter, locked: tuple[str, str]
) -> None:
    window, key, _ = enter(visit, locked)
    window.open("/?model=llama-3-8b&gpu=h100-sxm&ctx=4096")
    window.page.fill("[name=key]", key)
    with window.page.expect_navigation():
        window.page.keyboard.press("Enter")
    window.settle()
    for what, place in (
        ("link", "/?model"),
        ("curl", '-H "X-API-Key: $COSTSVC_KEY"'),
        ("formula", "api_key=YOUR-KEY"),
    ):
        window.page.click(f"#copy-{what}")
        copied = window.page.evaluate("navigator.clipboard.readText()")
        assert place in copied
        assert key not in copied


def test_a_key_in_an_address_is_taken_out_of_it(visit: Enter, locked: tuple[str, str]) -> None:
    window, key, asked = enter(visit, locked)
    window.open(f"/?model=llama-3-8b&gpu=h100-sxm&ctx=4096&api_key={key}")
    assert key not in window.page.url
    assert "A key is needed" in window.text("#problem")
    assert not any(key in url for url in asked[1:])
