"""Requests a second and latencies under load, by wrk: of quotes as ratios to a route that only answers.

Everything runs in turn, several rounds, and medians count, so that whatever else the machine does is in all.
"""

import json
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

import httpx

from bench.noop import PATH as NOOP
from bench.serving import Served, served

SECONDS: Final = 4
ROUNDS: Final = 3
CONNECTIONS: Final = 8
# Of the rate at which quotes saturate one worker: the load at which latencies are compared.
_PACED_SHARE: Final = 0.5
_SCRIPT: Final = Path(__file__).with_name("ask.lua")
_QUOTE: Final = "/quote?model=llama-3-70b&gpu=h100&ctx=8192&price_usd_per_gpu_hour=2.%d"
_AGAIN: Final = "/quote?model=llama-3-70b&gpu=h100&ctx=8192"
_firsts = count(1_000, 10_000_000)


@dataclass(frozen=True, slots=True)
class Ran:
    """What wrk saw."""

    per_s: float
    median_ms: float
    p99_ms: float


def wrk(
    at: Served,
    path: str,
    seconds: float,
    *,
    connections: int = CONNECTIONS,
    per_s: float = 0.0,
    tag: str = "",
) -> Ran:
    """Load one path for so long; `per_s` requests a second of all connections, 0 for as fast as answers come.

    Raises
    ------
    SystemExit
        An answer failed, so the figures mean nothing.
    """
    headers = [part for name, value in at.headers.items() for part in ("-H", f"{name}: {value}")]
    options = ["-t1", f"-c{connections}", f"-d{seconds:g}s", "-s", str(_SCRIPT), *headers, at.address]
    said = [path, str(next(_firsts)), str(per_s / connections), *([tag] if tag else [])]
    done = subprocess.run(["wrk", *options, "--", *said], capture_output=True, text=True, check=True)
    seen = json.loads(done.stdout.splitlines()[-1])
    if seen["failed"] or not seen["answers"]:
        raise SystemExit(f"{path}: {seen['failed']} of {seen['answers']} requests failed.")
    return Ran(seen["answers"] / seen["seconds"], seen["median_ms"], seen["p99_ms"])


def in_turn(runs: Mapping[str, Callable[[], Ran]], rounds: int = ROUNDS) -> dict[str, Ran]:
    """Medians of several rounds, in each of which everything runs once."""
    seen: dict[str, list[Ran]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            seen[name].append(run())
    return {
        name: Ran(
            *(
                statistics.median(getattr(one, figure) for one in every)
                for figure in ("per_s", "median_ms", "p99_ms")
            )
        )
        for name, every in seen.items()
    }


def main(seconds: float) -> None:
    """Print what one worker and two bear."""
    if shutil.which("wrk") is None:
        print("Without wrk (apt install wrk) there are no figures under load.")
        return
    with served() as one, served(bare=True) as bare:
        _warm(one)
        tag = httpx.get(one.address + _AGAIN, headers=one.headers).headers["ETag"]
        saturated = in_turn(
            {
                "a route that only answers": lambda: wrk(one, NOOP, seconds),
                "the same without the service": lambda: wrk(bare, NOOP, seconds),
                "a quote not asked before": lambda: wrk(one, _QUOTE, seconds),
                "a quote asked again": lambda: wrk(one, _AGAIN, seconds),
                "a quote that has not changed (304)": lambda: wrk(one, _AGAIN, seconds, tag=tag),
            }
        )
        _print(f"{CONNECTIONS} connections, one worker", saturated)
        rate = saturated["a quote not asked before"].per_s * _PACED_SHARE
        paced = in_turn(
            {
                "a route that only answers": lambda: wrk(one, NOOP, seconds, per_s=rate),
                "a quote not asked before": lambda: wrk(one, _QUOTE, seconds, per_s=rate),
            }
        )
        _print(f"the same load, {rate:.0f} requests/s", paced)
        alone = in_turn({"a quote not asked before": lambda: wrk(one, _QUOTE, seconds, connections=1)})
        _print("one connection", alone)
    with served() as one, served(workers=2) as two:
        for at in (one, two):
            _warm(at)
        both = in_turn(
            {
                "a quote not asked before, one worker": lambda: wrk(one, _QUOTE, seconds),
                "a quote not asked before, two workers": lambda: wrk(two, _QUOTE, seconds),
            }
        )
        _print("workers", both)


def _warm(at: Served) -> None:
    """Until every worker has compiled what it runs and looks up."""
    until_s = time.monotonic() + 1.0
    while time.monotonic() < until_s:
        wrk(at, _QUOTE, 1)


def _print(head: str, seen: Mapping[str, Ran]) -> None:
    columns: Sequence[str] = ("requests/s", "ratio", "median ms", "p99 ms", "ratio of p99")
    print(f"\n{head:42}" + "".join(f"{column:>14}" for column in columns))
    first = next(iter(seen.values()))
    for name, ran in seen.items():
        figures = (ran.per_s, ran.per_s / first.per_s, ran.median_ms, ran.p99_ms, ran.p99_ms / first.p99_ms)
        print(f"{name:42}" + "".join(f"{figure:14.2f}" for figure in figures), flush=True)
