"""Answers of a running service, each as a ratio to a route that only answers, in one run on one machine.

`python -m bench [CALLS]`: one client, one worker, medians. Times are of this machine; the ratios travel.
"""

import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx

CALLS: Final = 50
PATIENCE_S: Final = 60
SHORTEST_CONTEXT: Final = 4096
QUOTE: Final = "/quote?model=llama-3-70b&gpu=h100&ctx=8192"
PROFILE: Final = "/quote?model=llama-3-70b&gpu=h100&profile=chat&price_usd_per_gpu_hour=2."


@contextmanager
def served() -> Iterator[httpx.Client]:
    """A service over a new database, once it is ready."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        database = f"sqlite:///{Path(folder) / 'bench.db'}"
        process = subprocess.Popen(
            [sys.executable, "-c", "from costsvc.cli import main; main()", "serve", "--port", str(port)],
            env={**os.environ, "COSTSVC_DATABASE_URL": database, "COSTSVC_LOG_LEVEL": "warning"},
        )
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S) as client:
                _wait_for(client)
                yield client
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def _wait_for(client: httpx.Client) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < until_s:
        try:
            if client.get("/readyz").is_success:
                return
        except httpx.ConnectError:
            time.sleep(0.1)
    raise SystemExit(f"The service was not ready within {PATIENCE_S} s.")


def median_s(
    client: httpx.Client, calls: int, path: Callable[[int], str], headers: Mapping[str, str]
) -> float:
    """Median time of an answer over `calls` paths. [s]"""
    times_s = []
    for number in range(calls):
        start_s = time.perf_counter()
        response = client.get(path(number), headers=dict(headers))
        times_s.append(time.perf_counter() - start_s)
        if response.is_error:
            raise SystemExit(f"{path(number)}: {response.text}")
    return statistics.median(times_s)


def main(calls: int) -> None:
    """Print what each kind of answer takes."""
    with served() as client:
        tag = {"If-None-Match": client.get(QUOTE).headers["ETag"]}
        kinds: dict[str, tuple[Callable[[int], str], Mapping[str, str]]] = {
            "a route that only answers": (lambda _: "/healthz", {}),
            "a quote not asked before": (lambda n: QUOTE.replace("8192", str(SHORTEST_CONTEXT + n)), {}),
            "a quote of a profile, not asked before": (lambda n: f"{PROFILE}{n:04}", {}),
            "a quote asked again": (lambda _: QUOTE, {}),
            "a quote that has not changed (304)": (lambda _: QUOTE, tag),
        }
        least_s = 0.0
        print(f"{'median of ' + str(calls) + ' calls':42}{'ms':>9}{'ratio':>9}")
        for name, (path, headers) in kinds.items():
            taken_s = median_s(client, calls, path, headers)
            least_s = least_s or taken_s
            print(f"{name:42}{taken_s * 1e3:9.2f}{taken_s / least_s:9.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else CALLS)
