"""Every key that a comparison answers is on the page of the calls."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from costsvc.db.snapshot import Catalog
from costsvc.quoting.compare import CompareRequest, compare
from costsvc.quoting.curve import CurveRequest, curve
from costsvc.quoting.frontier import FrontierRequest, frontier
from costsvc.quoting.given import parse_filter
from costsvc.quoting.launch.request import LaunchRequest
from costsvc.quoting.launch_check import check_launch
from costsvc.quoting.request import QuoteRequest
from costsvc.quoting.roofline import roofline
from costsvc.quoting.what_if import WhatIfRequest, what_if
from tests.docs.pages import text_of
from tests.docs.refresh import DAY

API = text_of("docs/api.md")
WORKLOAD = {"model": "llama-3.1-70b", "gpu": "h100", "ctx": "16384"}
# Names of other things than keys: the request's parameters, levers and accelerators.
FREE = ("feature", "by_gpu", "scope")
ASKED: tuple[tuple[Callable[..., Any], type[QuoteRequest], Mapping[str, str]], ...] = (
    (compare, CompareRequest, {"rps": "5", "gpus": "1"}),
    (compare, CompareRequest, {"rps": "5"}),
    (frontier, FrontierRequest, {}),
    (curve, CurveRequest, {}),
    (what_if, WhatIfRequest, {}),
    (roofline, QuoteRequest, {}),
    (check_launch, LaunchRequest, {"users": "500"}),
    (check_launch, LaunchRequest, {"users": "500", "gpus": "1"}),
)


@pytest.mark.parametrize(
    ("use_case", "kind", "more"),
    ASKED,
    ids=[f"{use_case.__name__}-{len(more)}" for use_case, _, more in ASKED],
)
def test_every_key_of_a_comparison_is_described(
    catalog: Catalog, use_case: Callable[..., Any], kind: type[QuoteRequest], more: Mapping[str, str]
) -> None:
    answer = use_case(catalog, parse_filter(kind, {**WORKLOAD, **more}), DAY)
    assert sorted({key for key in _keys(answer) if f"`{key}`" not in API}) == []


def _keys(node: object) -> Iterator[str]:
    if isinstance(node, list):
        for one in node:
            yield from _keys(one)
    if isinstance(node, dict):
        for name, one in node.items():
            yield name
            if name not in FREE:
                yield from _keys(one)
