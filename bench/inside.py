"""What a process computes without a network: one whole quote, and how many steady states a second a sweep solves.

Times are of the processor, the least of several rounds, so that whatever else the machine does counts little.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from typing import Final

import numpy as np

from costsvc.db.snapshot import Catalog
from costsvc.engine.ready import make_ready
from costsvc.engine.replica import Replica
from costsvc.engine.serving import lengths_of, solution
from costsvc.ingest.files import catalog_root, read_catalog
from costsvc.quoting.choice import choose
from costsvc.quoting.compiled import every_layout
from costsvc.quoting.quote import make_quote
from costsvc.quoting.request import parse_request
from costsvc.quoting.scenario import Scenario, resolve

TODAY: Final = date(2026, 11, 29)
CALLS: Final = 40
ROUNDS: Final = 10
SHORTEST_CONTEXT: Final = 4096
SWEPT_TOKENS: Final = np.linspace(200.0, 8000.0, 1000)
"""Contexts of a sweep; longer sweeps go on in blocks like this one, so memory is bounded."""
QUOTES: Final[Mapping[str, Mapping[str, str]]] = {
    "dense model": {"model": "llama-3-70b", "gpu": "h100"},
    "dense model, half of the prompt found again": {"model": "llama-3-70b", "gpu": "h100", "hit_rate": "0.5"},
    "mixture of experts in 52 layouts": {"model": "deepseek-v3", "gpu": "h200"},
    "dense model, a profile of chats": {"model": "llama-3-70b", "gpu": "h100", "profile": "chat"},
}


def main() -> None:
    """Print both."""
    make_ready()
    catalog = Catalog(read_catalog(catalog_root(None)), 1)
    print(f"\n{'one quote, nothing kept of it':56}{'ms':>10}")
    for name, asked in QUOTES.items():
        print(f"{name:56}{_quote_s(catalog, asked) * 1e3:10.2f}", flush=True)
    print(f"\n{f'a sweep of {len(SWEPT_TOKENS):,} contexts':56}{'states/s':>10}")
    for name, asked in list(QUOTES.items())[::2]:
        scenario = resolve(catalog, parse_request({**asked, "ctx": "8000"}), TODAY)
        for layouts, replica in (
            ("the chosen layout", choose(scenario).replica),
            ("all layouts", every_layout(scenario)),
        ):
            print(f"{f'{name}, {layouts}':56}{_states_per_s(scenario, replica):10,.0f}", flush=True)


def _quote_s(catalog: Catalog, asked: Mapping[str, str]) -> float:
    """Processor time of a quote that was not asked before. [s]"""
    numbers = iter(range(CALLS * (ROUNDS + 1)))

    def ask() -> None:
        number = next(numbers)
        varied = {"price_usd_per_gpu_hour": f"2.{number}"} if "profile" in asked else {}
        context = {} if "profile" in asked else {"ctx": str(SHORTEST_CONTEXT + number)}
        make_quote(catalog, parse_request({**asked, **varied, **context}), TODAY)

    return _least_s(ask, CALLS)


def _states_per_s(scenario: Scenario, replica: Replica) -> float:
    """Steady states that one core solves. [1/s]"""
    lengths = replace(lengths_of(scenario.traffic), uncached=0.9 * SWEPT_TOKENS, output=0.1 * SWEPT_TOKENS)

    def sweep() -> None:
        solution(replica, lengths, scenario.objectives, scenario.utilization_share)

    return len(SWEPT_TOKENS) * len(replica.deployments) / _least_s(sweep, 1)


def _least_s(call: Callable[[], None], calls: int) -> float:
    """The least of several rounds, after one that does not count. [s]"""
    taken_s = []
    for _ in range(ROUNDS + 1):
        start_s = time.thread_time()
        for _ in range(calls):
            call()
        taken_s.append((time.thread_time() - start_s) / calls)
    return min(taken_s[1:])
