"""What surprises a reader of a quote is said in it."""

from typing import Any

import pytest

from costsvc.db.snapshot import Catalog
from costsvc.quoting.quote import make_quote
from costsvc.quoting.request import parse_request
from tests.engine.shapes import TODAY

FIRST = {"model": "llama-3-70b", "gpu": "h100", "ctx": 8192}
DEAR_INPUT = {"model": "falcon-180b", "gpu": "mi300x", "ctx": 2048}


def quote(catalog: Catalog, **asked: Any) -> Any:
    return make_quote(catalog, parse_request(asked), TODAY)


@pytest.mark.parametrize(("more", "is_dear"), [({}, True), ({"attribution": "step"}, False)])
def test_input_that_is_dearer_than_output_is_explained(
    catalog: Catalog, more: dict[str, str], is_dear: bool
) -> None:
    answer = quote(catalog, **DEAR_INPUT, **more)
    usd = {name: float(answer["prices"][name]["usd_per_mtok"]) for name in ("input", "output")}
    assert (usd["input"] > usd["output"]) is is_dear
    assert any("attribution=step" in warning for warning in answer["warnings"]) is is_dear


def test_a_margin_in_per_cent_is_shown_what_it_adds(catalog: Catalog) -> None:
    assert (
        "margin=20 adds 2,000 % to the cost; 20 % is margin=0.2."
        in quote(catalog, **FIRST, margin=20)["warnings"]
    )
    assert quote(catalog, **FIRST, margin=0.2)["warnings"] == []


def test_output_of_a_gpu_counts_both_pools_where_there_are_two(catalog: Catalog) -> None:
    answer = quote(catalog, **FIRST, mode="disaggregated")
    rates, prefill = answer["throughput"], answer["deployment"]["prefill_replicas_per_decode_replica"]
    assert rates["output_tok_s_per_gpu"] / rates["output_tok_s_per_gpu_of_both_pools"] == pytest.approx(
        1 + prefill
    )
    paid_gpu_s = answer["cost"]["request_gpu_seconds"] / answer["request"]["output_tokens"]
    assert 1 / rates["output_tok_s_per_gpu_of_both_pools"] == pytest.approx(paid_gpu_s, rel=1e-6)
    assert "output_tok_s_per_gpu_of_both_pools" not in quote(catalog, **FIRST)["throughput"]
