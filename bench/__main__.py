"""Answers of a running service, each as a ratio to a route that only answers, in one run on one machine.

`python -m bench [SECONDS]`: what a process computes without a network, how long one client waits, then requests a
second under load, by wrk, each run so long. Times are of this machine; the ratios travel. Metrics, CORS, keys and
limits are on.
"""

import statistics
import sys
import time
from collections.abc import Callable, Mapping
from typing import Final

import httpx

from bench import inside, load
from bench.noop import PATH as NOOP
from bench.serving import PATIENCE_S, served

CALLS: Final = 100
SHORTEST_CONTEXT: Final = 4096
QUOTE: Final = "/quote?model=llama-3-70b&gpu=h100&ctx=8192"
PROFILE: Final = "/quote?model=llama-3-70b&gpu=h100&profile=chat&price_usd_per_gpu_hour=2."


def call_s(client: httpx.Client, path: str, headers: Mapping[str, str]) -> float:
    """Time of one answer. [s]"""
    start_s = time.perf_counter()
    response = client.get(path, headers=dict(headers))
    taken_s = time.perf_counter() - start_s
    if response.is_error:
        raise SystemExit(f"{path}: {response.text}")
    return taken_s


def main() -> None:
    """Print what each kind of answer takes one client, called in turn."""
    with (
        served() as one,
        httpx.Client(base_url=one.address, headers=one.headers, timeout=PATIENCE_S) as client,
    ):
        tag = {"If-None-Match": client.get(QUOTE).headers["ETag"]}
        kinds: dict[str, tuple[Callable[[int], str], Mapping[str, str]]] = {
            "a route that only answers": (lambda _: NOOP, {}),
            "a quote not asked before": (lambda n: QUOTE.replace("8192", str(SHORTEST_CONTEXT + n)), {}),
            "a quote of a profile, not asked before": (lambda n: f"{PROFILE}{n:04}", {}),
            "a quote asked again": (lambda _: QUOTE, {}),
            "a quote that has not changed (304)": (lambda _: QUOTE, tag),
        }
        times_s: dict[str, list[float]] = {name: [] for name in kinds}
        for number in range(CALLS):
            for name, (path, headers) in kinds.items():
                times_s[name].append(call_s(client, path(number), headers))
    medians_s = {name: statistics.median(every) for name, every in times_s.items()}
    least_s = medians_s["a route that only answers"]
    print(f"{'one client, median of ' + str(CALLS) + ' calls':42}{'ms':>14}{'ratio':>14}")
    for name, taken_s in medians_s.items():
        print(f"{name:42}{taken_s * 1e3:14.2f}{taken_s / least_s:14.1f}")


if __name__ == "__main__":
    inside.main()
    main()
    load.main(float(sys.argv[1]) if sys.argv[1:] else load.SECONDS)
