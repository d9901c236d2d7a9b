"""Lists in a query: every combination once, and no name with a comma taken apart."""

import pytest

from costsvc.db.snapshot import Catalog
from costsvc.errors import InvalidRequest
from costsvc.quoting.grid import MAX_QUOTES, grid_of, is_grid, refuse_several
from tests.db.examples import CONTENT, DAY, offer, with_offers

OFFER = offer("Acme, Inc.", [(DAY, "2")], region="Frankfurt, DE")
CATALOG = Catalog(with_offers(CONTENT, *CONTENT.offers, OFFER), 1)


def test_the_last_list_runs_fastest() -> None:
    given = {"model": "a,b", "gpu": "h100", "ctx": "1, 2"}
    assert is_grid(given, CATALOG)
    assert [tuple(one.values()) for one in grid_of(given, CATALOG)] == [
        ("a", "h100", "1"),
        ("a", "h100", "2"),
        ("b", "h100", "1"),
        ("b", "h100", "2"),
    ]


def test_a_name_with_a_comma_is_one_name() -> None:
    given = {"provider": "acme, inc.", "region": "Frankfurt, DE", "ctx": "8192"}
    assert not is_grid(given, CATALOG)
    assert grid_of({**given, "ctx": "1,2"}, CATALOG)[1] == {**given, "ctx": "2"}
    assert is_grid({"provider": "Acme, AWS EC2"}, CATALOG)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"ctx": "1,,2"}, "a list with an empty place"),
        ({"ctx": ",".join(map(str, range(MAX_QUOTES + 1)))}, f"{MAX_QUOTES + 1} quotes"),
    ],
)
def test_a_list_with_holes_or_too_long_is_refused(given: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        grid_of(given, CATALOG)


@pytest.mark.parametrize("gpu", ["h100,h200", "any"])
def test_where_one_quote_is_answered_several_are_shown_the_way(gpu: str) -> None:
    with pytest.raises(InvalidRequest, match=r"/compare\?gpu=h100,h200 .* /quote\.csv") as caught:
        refuse_several({"model": "llama-3-70b", "gpu": gpu, "ctx": "8,192"}, CATALOG)
    assert caught.value.field == "gpu"
    refuse_several({"gpu": "h100", "ctx": "8,192", "provider": "Acme, Inc."}, CATALOG)
