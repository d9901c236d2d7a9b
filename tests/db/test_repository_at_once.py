"""Writers at once take turns and lose nothing, and readers do not wait for them."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import Engine, event

from costsvc.db.engine import make_engine
from costsvc.db.entries import CatalogContent
from costsvc.db.repository import CatalogRepository, StoreResult
from costsvc.errors import NotInCatalog
from tests.db.examples import CONTENT, DAY, model, offer, store, with_offers


def test_loaders_at_once_take_turns_and_lose_nothing(repository: CatalogRepository) -> None:
    contents = [with_offers(CONTENT, offer(f"P{n}", [(DAY, "1")])) for n in range(6)]
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(lambda content: store(repository, content), contents))
    assert sorted(result.revision for result in results) == [1, 2, 3, 4, 5, 6]
    for result, content in zip(results, contents, strict=True):
        assert repository.load(result.revision) == content


def test_changes_at_once_build_on_one_another(repository: CatalogRepository) -> None:
    store(repository, with_offers(CONTENT))

    def add(provider: str) -> StoreResult:
        def change(before: CatalogContent | None) -> CatalogContent:
            assert before is not None
            return with_offers(before, *before.offers, offer(provider, [(DAY, "1")]))

        return repository.store_changed(change, author=provider, note="")

    with ThreadPoolExecutor(6) as pool:
        revisions = {result.revision for result in pool.map(add, "ABCDEF")}
    assert revisions == {2, 3, 4, 5, 6, 7}
    assert {offer.provider for offer in repository.load().offers} == set("ABCDEF")


def test_a_change_that_is_refused_stores_nothing_and_lets_the_next_one_through(
    repository: CatalogRepository,
) -> None:
    def refuse(before: CatalogContent | None) -> CatalogContent:
        assert before is None
        raise NotInCatalog("gpu", "h1000", [])

    with pytest.raises(NotInCatalog, match="h1000"):
        repository.store_changed(refuse, author="me", note="")
    assert repository.newest_revision() is None
    assert repository.store_changed(lambda _: CONTENT, author="me", note="").revision == 1


def test_the_same_catalog_stored_at_once_is_one_revision(repository: CatalogRepository) -> None:
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: store(repository, CONTENT), range(4)))
    assert {result.revision for result in results} == {1}
    assert sum(result.added > 0 for result in results) == 1


def test_readers_do_not_wait_for_a_writer(repository: CatalogRepository, engine: Engine) -> None:
    store(repository, CONTENT)
    elsewhere = make_engine(engine.url.render_as_string(hide_password=False))
    seen: list[int | None] = []

    @event.listens_for(engine, "before_cursor_execute")
    def read_meanwhile(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        if statement.startswith("INSERT INTO fact_source"):
            seen.append(CatalogRepository(elsewhere).newest_revision())

    store(repository, replace(CONTENT, models=(*CONTENT.models, model("new"))))
    elsewhere.dispose()
    assert seen == [1]
