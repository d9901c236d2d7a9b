"""Catalogs come back as they were stored, at every revision, whatever happens meanwhile."""

import time
from dataclasses import fields, replace
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, event, func, select, text
from sqlalchemy.exc import IntegrityError

from costsvc.db import tables
from costsvc.db.audit import audit_entries
from costsvc.db.engine import make_engine
from costsvc.db.entries import CatalogContent
from costsvc.db.repository import CatalogRepository, StoreResult
from costsvc.db.rows import canonical, content_hash, rows_of
from costsvc.db.snapshot import Catalog
from costsvc.errors import InvalidCatalogFile, NotInCatalog, Unavailable
from tests.db.examples import CONTENT, DAY, model, offer, store, with_offers

DATABASE = [HealthCheck.function_scoped_fixture]


def backwards(content: CatalogContent) -> CatalogContent:
    return CatalogContent(**{part.name: getattr(content, part.name)[::-1] for part in fields(content)})


def test_a_catalog_comes_back_equal(repository: CatalogRepository) -> None:
    store(repository, CONTENT)
    assert repository.load() == CONTENT


def test_the_example_fills_every_table_so_that_the_test_above_means_all_of_them() -> None:
    rows = rows_of(CONTENT)
    assert set(rows) == set(tables.Versioned.__subclasses__())
    assert all(rows.values())


decimals = st.decimals(
    min_value=0, max_value=10**12, allow_nan=False, allow_infinity=False, places=9
) | st.decimals(min_value=Decimal("1e-30"), max_value=1, allow_nan=False, allow_infinity=False)
days = st.dates(min_value=date(2000, 1, 1), max_value=date(2100, 1, 1))
words = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)


@settings(max_examples=25, deadline=None, suppress_health_check=DATABASE)
@given(
    prices=st.dictionaries(days, st.none() | decimals, min_size=1, max_size=4),
    name=words,
    rate=st.floats(min_value=1, max_value=1e20),
    value=st.floats(allow_nan=False, allow_infinity=False),
    count=st.integers(0, 2**62),
    repeated=st.integers(1, 3),
)
def test_any_decimal_day_text_rate_and_count_comes_back_equal(
    *,
    repository: CatalogRepository,
    prices: dict[date, Decimal | None],
    name: str,
    rate: float,
    value: float,
    count: int,
    repeated: int,
) -> None:
    dated = offer("Any", sorted((day, None if usd is None else str(usd)) for day, usd in prices.items()))
    gpu = CONTENT.gpus[0]
    content = replace(
        with_offers(CONTENT, replace(dated, provider=name, notes=name)),
        models=(replace(CONTENT.models[0], name=name, published_parameters=count),),
        gpus=(replace(gpu, spec=replace(gpu.spec, dense_flops_per_s={name: rate})), *CONTENT.gpus[1:]),
        judgements=(replace(CONTENT.judgements[0], value=value),),
        api_prices=tuple(price for price in CONTENT.api_prices for _ in range(repeated)),
    )
    revision = store(repository, content).revision
    assert repository.load() == content
    assert store(repository, content) == StoreResult(revision, 0, 0, 0)


def test_the_same_catalog_in_another_order_is_no_new_revision(repository: CatalogRepository) -> None:
    assert store(repository, CONTENT).revision == 1
    assert store(repository, backwards(CONTENT)) == StoreResult(1, 0, 0, 0)
    assert repository.newest_revision() == 1
    assert len(repository.revisions()) == 1


def test_the_order_of_entries_is_no_part_of_a_catalog() -> None:
    other = backwards(CONTENT)
    assert other != CONTENT
    assert canonical(other) == CONTENT
    assert content_hash(rows_of(other)) == content_hash(rows_of(CONTENT))
    assert content_hash(rows_of(with_offers(CONTENT))) != content_hash(rows_of(CONTENT))


def test_what_changed_is_retired_and_added_again(repository: CatalogRepository, engine: Engine) -> None:
    store(repository, CONTENT)
    first, second, third = CONTENT.models
    renamed = replace(first, name="Another name")
    content = replace(CONTENT, models=(renamed, second, model("new")), api_prices=())
    result = store(repository, content)
    # `qwen3-8b` has a row and two sources of facts, as `new` has; two API prices and their provider go.
    assert result == StoreResult(revision=2, added=3, changed=1, retired=6)
    assert third not in repository.load().models
    assert repository.load() == canonical(content)
    with engine.connect() as connection:
        spans = connection.execute(
            select(tables.ModelRow.added_revision, tables.ModelRow.retired_revision)
            .where(tables.ModelRow.id == first.id)
            .order_by(tables.ModelRow.added_revision)
        ).all()
    assert [tuple(span) for span in spans] == [(1, 2), (2, None)]


def test_a_new_price_is_one_added_row(repository: CatalogRepository) -> None:
    history = [(date(2026, 1, 1), "3.00"), (date(2026, 6, 1), "2.50")]
    store(repository, with_offers(CONTENT, offer("X", history)))
    longer = with_offers(CONTENT, offer("X", [*history, (DAY, "2.00")]))
    assert store(repository, longer) == StoreResult(revision=2, added=1, changed=0, retired=0)


def test_an_old_revision_reads_back_exactly_after_prices_of_past_days_were_added(
    repository: CatalogRepository,
) -> None:
    known = with_offers(CONTENT, offer("X", [(date(2026, 1, 1), "3.00")]), offer("Y", [(DAY, "5")]))
    store(repository, known)
    quoted = Catalog(repository.load(1), 1).reference_price("h100-sxm", DAY)
    backdated = with_offers(
        known, offer("X", [(date(2026, 1, 1), "3.00"), (date(2026, 3, 1), "1.00")]), offer("Z", [(DAY, "9")])
    )
    store(repository, backdated)
    assert Catalog(repository.load(2), 2).reference_price("h100-sxm", DAY) != quoted
    assert repository.load(1) == known
    assert Catalog(repository.load(1), 1).reference_price("h100-sxm", DAY) == quoted
    recorded = {revision.id: revision.content_hash for revision in repository.revisions()}
    assert content_hash(rows_of(repository.load(1))) == recorded[1] != recorded[2]


LATER = with_offers(
    CONTENT,
    *CONTENT.offers[1:],
    offer("New Cloud", [(DAY, "1.00")]),
    replace(
        CONTENT.offers[0],
        prices=(*CONTENT.offers[0].prices[:1], replace(CONTENT.offers[0].prices[1], usd_per_gpu_hour=None)),
    ),
)


@pytest.mark.parametrize(
    "later",
    [
        LATER,
        with_offers(CONTENT),
        with_offers(CONTENT, *CONTENT.offers, offer("AWS EC2", [(DAY, "2")], region="far")),
        replace(CONTENT, sources=(replace(CONTENT.sources[0], locator="page 2"), *CONTENT.sources[1:])),
        replace(CONTENT, models=CONTENT.models[:2]),
        replace(LATER, fx_rates=CONTENT.fx_rates[:1]),
    ],
    ids=["prices", "no offers", "one more offer", "a source", "a model", "prices and rates"],
)
def test_a_difference_reads_as_the_whole_does(repository: CatalogRepository, later: CatalogContent) -> None:
    store(repository, CONTENT)
    known = repository.load()
    store(repository, with_offers(CONTENT, *CONTENT.offers, offer("Gone Cloud", [(DAY, "9")])))
    store(repository, later)
    read = repository.load_after(known, 1, 3)
    assert read == repository.load(3) == canonical(later)
    assert Catalog(known, 1).followed_by(read, 3).offers("h100-sxm") == Catalog(read, 3).offers("h100-sxm")


def test_what_did_not_change_is_shared(repository: CatalogRepository) -> None:
    store(repository, CONTENT)
    known = repository.load()
    store(repository, LATER)
    read = repository.load_after(known, 1, 2)
    assert read.models is known.models
    same = [one for one in read.offers if one.id == CONTENT.offers[1].id]
    assert same[0] is known.offers[1]
    catalog = Catalog(known, 1, repository.content_hash(1))
    later = catalog.followed_by(read, 2, repository.content_hash(2))
    assert later.models is catalog.models
    assert later.fingerprint != catalog.fingerprint
    assert catalog.reference_price("h100-sxm", DAY) != later.reference_price("h100-sxm", DAY)


def test_offers_are_shared_where_a_model_is_new(repository: CatalogRepository) -> None:
    store(repository, CONTENT)
    known = repository.load()
    store(repository, replace(CONTENT, models=(*CONTENT.models, model("new"))))
    read = repository.load_after(known, 1, 2)
    assert read == repository.load(2)
    assert all(ours is theirs for ours, theirs in zip(read.offers, known.offers, strict=True))


def test_a_revision_says_who_stored_what_and_when(engine: Engine) -> None:
    noon = datetime(2026, 11, 29, 12, tzinfo=UTC)
    CatalogRepository(engine, lambda: noon).store(CONTENT, author="ana", note="first load")
    (revision,) = CatalogRepository(engine).revisions()
    assert (revision.created_at, revision.author, revision.note) == (noon, "ana", "first load")
    assert revision.rows_added == sum(map(len, rows_of(CONTENT).values()))
    (act,) = audit_entries(engine)
    assert (act.at, act.actor, act.action, act.subject) == (noon, "ana", "store catalog", "revision 1")
    assert act.after == {"rows_added": revision.rows_added, "rows_changed": 0, "rows_retired": 0}


def test_what_a_change_found_and_left_is_on_record_where_it_is_few_rows(engine: Engine) -> None:
    repository = CatalogRepository(engine)
    repository.store(CONTENT, author="ana", note="")
    renamed = tuple(replace(one, notes="seen again") for one in CONTENT.models[:1])
    repository.store(replace(CONTENT, models=(*renamed, *CONTENT.models[1:])), author="ben", note="")
    act = audit_entries(engine)[0]
    assert act.before is not None
    assert act.after is not None
    (was,), (became,) = act.before["model"], act.after["model"]
    assert (was["id"], became["id"]) == (CONTENT.models[0].id, CONTENT.models[0].id)
    assert (was["notes"], became["notes"]) == (CONTENT.models[0].notes, "seen again")
    assert act.after["rows_changed"] == 1
    many = tuple(model(f"one-of-many-{n}") for n in range(300))
    repository.store(replace(CONTENT, models=(*CONTENT.models, *many)), author="ben", note="")
    act = audit_entries(engine)[0]
    assert act.before is None
    assert act.after is not None
    assert set(act.after) == {"rows_added", "rows_changed", "rows_retired"}


def test_a_revision_that_does_not_exist_is_refused_with_the_known_range(
    repository: CatalogRepository,
) -> None:
    store(repository, CONTENT)
    store(repository, with_offers(CONTENT))
    for wanted in (0, 3):
        with pytest.raises(NotInCatalog, match="revisions 1 to 2"):
            repository.load(wanted)


def test_a_database_without_a_catalog_says_how_to_load_one(repository: CatalogRepository) -> None:
    assert repository.newest_revision() is None
    with pytest.raises(Unavailable, match="costsvc catalog load"):
        repository.load()


def test_a_database_without_tables_says_how_to_make_them(empty_database_url: str) -> None:
    engine = make_engine(empty_database_url)
    with pytest.raises(Unavailable, match="costsvc db upgrade"):
        CatalogRepository(engine).newest_revision()
    engine.dispose()


def test_a_store_that_fails_half_way_leaves_nothing_behind(
    repository: CatalogRepository, engine: Engine
) -> None:
    store(repository, CONTENT)

    @event.listens_for(engine, "before_cursor_execute")
    def fail(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        # The last table to be written: everything before it is in the transaction by then.
        if statement.startswith("INSERT INTO fact_source"):
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        store(repository, replace(CONTENT, models=(*CONTENT.models, model("new"))))
    event.remove(engine, "before_cursor_execute", fail)
    assert repository.newest_revision() == 1
    assert repository.load() == CONTENT
    assert len(audit_entries(engine)) == 1
    with engine.connect() as connection:
        newest = select(func.max(tables.ModelRow.added_revision), func.max(tables.ModelRow.retired_revision))
        assert tuple(connection.execute(newest).one()) == (1, None)


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (replace(CONTENT, sources=()), "names source 'price-list'"),
        (replace(CONTENT, gpus=()), "names gpu 'h100-sxm'"),
        (replace(CONTENT, models=()), "names model 'llama-3-70b'"),
        (replace(CONTENT, dtypes=CONTENT.dtypes[:1]), "names dtype 'mxfp4'"),
        (replace(CONTENT, weight_plans=CONTENT.weight_plans[1:]), "names weight plan 'bf16'"),
        (replace(CONTENT, gpus=CONTENT.gpus * 2), "gpu h100-nvl is there 2 times"),
        (
            replace(
                CONTENT,
                models=(replace(CONTENT.models[0], fact_sources=CONTENT.models[0].fact_sources * 2),),
            ),
            "fact_source model / llama-3-70b / hidden_size is there 2 times",
        ),
    ],
)
def test_a_catalog_that_contradicts_itself_is_refused(
    repository: CatalogRepository, broken: CatalogContent, complaint: str
) -> None:
    with pytest.raises(InvalidCatalogFile) as refusal:
        store(repository, broken)
    assert complaint in str(refusal.value)
    assert repository.newest_revision() is None


def test_the_database_itself_allows_one_source_per_fact(
    engine: Engine, repository: CatalogRepository
) -> None:
    store(repository, CONTENT)
    again = text(
        "INSERT INTO fact_source (row_id, entry_kind, entry_id, field, source_id, added_revision)"
        " VALUES (9999, 'model', 'llama-3-70b', 'hidden_size', 'sheet', 1)"
    )
    with pytest.raises(IntegrityError, match=r"(?i)unique"), engine.begin() as connection:
        connection.execute(again)


def test_thousands_of_rows_are_stored_and_loaded_in_seconds(repository: CatalogRepository) -> None:
    offers = [
        offer(f"P{n % 40}", [(date(2026, 1, 1 + n % 28), "3"), (DAY, "4")], suffix=str(n))
        for n in range(1700)
    ]
    content = with_offers(CONTENT, *offers)
    assert sum(map(len, rows_of(content).values())) > 5000
    begun_s = time.perf_counter()
    store(repository, content)
    stored_s = time.perf_counter()
    Catalog(repository.load(), 1)
    loaded_s = time.perf_counter()
    # On an idle machine a second and a quarter of one; the bounds leave room for a busy one.
    assert stored_s - begun_s < 6
    assert loaded_s - stored_s < 3


def test_the_files_a_catalog_was_read_from_are_known_until_it_is_from_others(
    repository: CatalogRepository,
) -> None:
    assert repository.files_fingerprint() is None
    repository.store_changed(lambda _before: CONTENT, author="me", note="", files_fingerprint="a")
    assert repository.files_fingerprint() == "a"
    repository.store_changed(lambda before: before or CONTENT, author="me", note="a posted price")
    assert repository.files_fingerprint() == "a"
    unchanged = repository.store_changed(lambda _b: CONTENT, author="me", note="", files_fingerprint="b")
    assert (unchanged.revision, repository.files_fingerprint()) == (1, "b")
    store(repository, CONTENT)
    assert repository.files_fingerprint() is None


def test_files_that_are_refused_are_not_known(repository: CatalogRepository) -> None:
    def refused(_before: CatalogContent | None) -> CatalogContent:
        raise InvalidCatalogFile("a.yaml", "is wrong")

    with pytest.raises(InvalidCatalogFile):
        repository.store_changed(refused, author="me", note="", files_fingerprint="a")
    assert repository.files_fingerprint() is None
