"""Feeds on recorded samples: what they find, what they propose, and that a proposal is a catalog file's text."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from genai_prices.types import ClauseEquals, ModelInfo, ModelPrice, Provider, Tier, TieredPrices

from costsvc.cli import main
from costsvc.cli.catalog_diff import proposed
from costsvc.db.entries import CatalogContent, DatedPrice
from costsvc.db.snapshot import Catalog
from costsvc.errors import InvalidRequest
from costsvc.ingest.feeds import genai_prices, skypilot
from costsvc.ingest.feeds.compared import Compared, Sellers, compare
from costsvc.ingest.files import catalog_root, read_catalog, read_providers

SAMPLE = Path(__file__).parent / "skypilot"
DAY = date(2026, 12, 1)


@pytest.fixture(scope="module")
def content() -> CatalogContent:
    return read_catalog(catalog_root(None))


@pytest.fixture(scope="module")
def sellers() -> Sellers:
    return Sellers(read_providers(catalog_root(None)))


def against(content: CatalogContent, sellers: Sellers, published: Any) -> Compared:
    return compare(Catalog(content, None), sellers, published, DAY)


def test_the_offers_of_a_cloud_are_read_with_their_spot_prices() -> None:
    offers = skypilot.read(str(SAMPLE)).offers
    assert len(offers) == 9, "six instances with GPUs, three of them also as spot"
    eight = [one for one in offers if one.instance_type == "gpu-h100-sxm_8gpu-128vcpu-1600gb"]
    assert [(one.market, one.usd_per_instance_hour) for one in eight] == [
        ("on-demand", Decimal("23.60")),
        ("spot", Decimal("10.00")),
    ]
    assert (eight[0].provider, eight[0].gpus_per_instance, eight[0].region) == ("nebius", 8, "eu-north1")


def test_what_the_catalog_was_read_from_agrees_with_it(content: CatalogContent, sellers: Sellers) -> None:
    compared = against(content, sellers, skypilot.read(str(SAMPLE / "nebius" / "vms.csv")))
    assert (compared.same, compared.proposals, compared.left_out) == (9, (), {})


@pytest.fixture(scope="module")
def changed(content: CatalogContent) -> CatalogContent:
    """A catalog that lacks one offer of the sample and has another price of one."""

    def prices(offer: Any) -> tuple[DatedPrice, ...]:
        return tuple(replace(price, usd_per_gpu_hour=Decimal("9")) for price in offer.prices)

    offers = [
        replace(offer, prices=prices(offer)) if offer.gpu_id == "b200-sxm" else offer
        for offer in content.offers
        if not (offer.provider == "Nebius" and offer.gpu_id == "h200-sxm")
    ]
    return replace(content, offers=tuple(offers))


def test_a_changed_price_and_a_new_offer_are_proposed(changed: CatalogContent, sellers: Sellers) -> None:
    proposals = against(changed, sellers, skypilot.read(str(SAMPLE))).proposals
    assert [(one.kind, one.before, one.after) for one in proposals] == [
        ("changed", "9 USD/GPU-hour", "5.5 USD/GPU-hour"),
        ("new", None, "3.5 USD/GPU-hour"),
        ("new", None, "1.45 USD/GPU-hour"),
    ]
    assert {one.file for one in proposals} == {"prices/nebius.yaml"}


def test_a_proposal_copied_into_the_files_is_a_valid_catalog(
    changed: CatalogContent, sellers: Sellers, tmp_path: Path
) -> None:
    document = yaml.safe_load(proposed(against(changed, sellers, skypilot.read(str(SAMPLE)))))
    root = small(tmp_path)
    prices, sources = root / "prices" / "nebius.yaml", root / "sources.yaml"
    file = yaml.safe_load(prices.read_text())
    new = document["prices/nebius.yaml"]["new"]
    kept = [offer for offer in file["offers"] if offer["gpu"] != "h200-sxm"]
    _write(prices, {**file, "checked": DAY, "offers": [*kept, *new]})
    listed = yaml.safe_load(sources.read_text())
    _write(sources, {"sources": [*listed["sources"], document["source"]]})
    added = [offer for offer in read_catalog(root).offers if offer.provider == "Nebius"]
    assert [offer.prices[-1].usd_per_gpu_hour for offer in added if offer.gpu_id == "h200-sxm"] == [
        Decimal("3.50"),
        Decimal("1.45"),
    ]


def small(folder: Path) -> Path:
    """The shipped catalog without models and their prices, which is read in a moment."""
    without = shutil.ignore_patterns("models", "api_prices", "measured")
    return Path(shutil.copytree(catalog_root(None), folder / "catalog", ignore=without))


def _write(path: Path, document: Any) -> None:
    path.write_text(yaml.safe_dump(document, sort_keys=False))


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (None, "give --from"),
        ("nowhere/vms.csv", "cannot be read"),
        ("prices.csv", "does not end in <cloud>/vms.csv"),
        ("EMPTY", "no <cloud>/vms.csv below"),
        ("README", "does not end in"),
    ],
)
def test_what_is_no_such_file_is_refused(place: str | None, words: str, tmp_path: Path) -> None:
    there = {"EMPTY": str(tmp_path), "README": str(SAMPLE / "README.md")}
    with pytest.raises(InvalidRequest, match=words):
        skypilot.read(place and there.get(place, place))


def test_a_file_of_other_columns_is_refused(tmp_path: Path) -> None:
    (tmp_path / "nebius").mkdir()
    (tmp_path / "nebius" / "vms.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InvalidRequest, match="lacks the columns AcceleratorCount"):
        skypilot.read(str(tmp_path))


@pytest.mark.parametrize("usd", ["", "0", "-1", "nan", "inf", "cheap"])
def test_a_price_that_is_none_is_left_out(usd: str, tmp_path: Path) -> None:
    (tmp_path / "nebius").mkdir()
    header = "InstanceType,AcceleratorName,AcceleratorCount,Price,SpotPrice,Region"
    (tmp_path / "nebius" / "vms.csv").write_text(f"{header}\nx,H100,1,{usd},,r\ny,H100,0.5,1,,r\n")
    assert skypilot.read(str(tmp_path)).offers == ()


def models() -> Iterator[ModelInfo]:
    """Rows of genai-prices 0.2.3 (prices of Avian and Azure), read on 2026-11-29, and one with tiers."""
    rows: dict[str, dict[str, Any]] = {
        "phi-4": {"input_mtok": Decimal("0.125"), "output_mtok": Decimal("0.5")},
        "deepseek/deepseek-v3.2": {
            "input_mtok": TieredPrices(base=Decimal("0.23"), tiers=[Tier(start=200_000, price=Decimal(1))]),
            "cache_read_mtok": Decimal("0.012"),
            "output_mtok": Decimal("0.33"),
        },
        "free": {"input_mtok": Decimal(0), "output_mtok": Decimal(0)},
        "nobody-holds-this": {"input_mtok": Decimal(1), "output_mtok": Decimal(2)},
    }
    for id, prices in rows.items():
        yield ModelInfo(id=id, match=ClauseEquals(equals=id), prices=ModelPrice(**prices))


def test_token_prices_are_proposed_for_models_of_the_catalog(
    content: CatalogContent, sellers: Sellers
) -> None:
    provider = Provider(id="azure", name="Azure", api_pattern="", models=list(models()))
    unknown = replace(provider, id="nobody")
    published = genai_prices.published([provider, unknown], locator="version 0.2.3")
    compared = against(content, sellers, published)
    found = {one.entry["id"]: one for one in compared.proposals}
    assert set(found) == {"phi-4", "deepseek/deepseek-v3.2"}
    assert (found["phi-4"].kind, found["phi-4"].entry["input_usd_per_mtok"]) == ("changed", "0.125")
    assert found["deepseek/deepseek-v3.2"].entry["input_usd_per_mtok"] == "0.23", "the base of its tiers"
    assert found["deepseek/deepseek-v3.2"].entry["model"] == "deepseek-v3.2"
    assert compared.left_out == {
        "a model that the catalog does not hold": 1,
        "a provider that the catalog does not name: nobody": 4,
        "no price of tokens": 1,
    }


def test_the_installed_list_is_read_and_a_file_is_not() -> None:
    published = genai_prices.read(None)
    assert len(published.tokens) > 1000
    assert published.source["locator"].startswith("version ")
    with pytest.raises(InvalidRequest, match="https address"):
        genai_prices.read("prices.json")


def run(*arguments: str) -> Any:
    return CliRunner().invoke(main, ["catalog", "diff", *arguments])


def test_the_command_writes_a_proposal_and_never_over_a_file(tmp_path: Path) -> None:
    out = tmp_path / "proposal.yaml"
    asked = ("--feed", "skypilot", "--from", str(SAMPLE), "--out", str(out), "--dir", str(small(tmp_path)))
    done = run(*asked, "--provider", "nebius", "--observed", "2026-12-01")
    assert (done.exit_code, "9 prices agree, 0 changed, 0 are new." in done.output) == (0, True)
    assert not out.exists(), "there was nothing to propose"
    out.write_text("mine")
    refused = run(*asked)
    assert (refused.exit_code, "is there already" in refused.output) == (2, True)
    assert out.read_text() == "mine"


def test_an_unknown_provider_is_named(tmp_path: Path) -> None:
    refused = run(
        "--feed", "skypilot", "--from", str(SAMPLE), "--provider", "nobody", "--dir", str(small(tmp_path))
    )
    assert (refused.exit_code, "no provider 'nobody'" in refused.output) == (2, True)
