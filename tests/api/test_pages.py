"""The pages over HTTP: compressed, revalidated, under the strict policy, and nothing but them."""

import pytest

from costsvc.web.pages import POLICY
from tests.api.conftest import Client

SENT = ("/", "/launch", "/catalog", "/accuracy", "/assets/explorer.js", "/assets/vendor/d3.min.js")


@pytest.mark.parametrize("url", SENT)
def test_files_are_sent_compressed_with_the_policy_and_revalidated(client: Client, url: str) -> None:
    response = client.get(url)
    assert response.status_code == 200
    assert response.headers["Content-Encoding"] == "gzip"
    assert response.headers["Content-Security-Policy"] == POLICY
    again = client.get(url, headers={"If-None-Match": response.headers["ETag"]})
    assert again.status_code == 304
    plain = client.get(url, headers={"Accept-Encoding": "identity"})
    assert plain.content == response.content


@pytest.mark.parametrize("path", ["nothing.js", "../pages.py", "%2e%2e/pages.py", "vendor", "/etc/hostname"])
def test_nothing_but_assets_is_sent(client: Client, path: str) -> None:
    assert client.get(f"/assets/{path}").status_code == 404


@pytest.mark.parametrize(
    "path", ["/", "/launch", "/catalog", "/accuracy", "/problems", "/metrics", "/assets/style.css"]
)
def test_the_character_set_is_named_once(client: Client, path: str) -> None:
    assert client.get(path).headers["content-type"].count("charset=utf-8") == 1
