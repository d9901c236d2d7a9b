"""`python -m tests.faults.soak [SECONDS]`: two workers under mixed load; no fault, and memory that stays flat.

Exits with 1 where an answer had a status of 500 or more, or memory grew in the second half of the time, or with the
number of answers. Answers are kept in little memory: what that cache takes until it is full would hide the rest.
"""

import json
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final

import httpx
from pydantic import SecretStr

from costsvc.cli.serve import prepare
from costsvc.db.engine import make_engine
from costsvc.db.keys import KeyRepository
from costsvc.settings import Settings
from tests.faults.processes import Replica, once

SECONDS: Final = 600.0
CALLERS: Final = 4
WARM_AFTER_ANSWERS: Final = 3000
"""When caches are full and every kind of request has been met: before, memory grows for good reasons."""
MOST_GROWN_RATIO: Final = 1.05
MOST_GROWN_BYTES_PER_ANSWER: Final = 2000.0
PATIENCE_S: Final = 120
_SAMPLE_S: Final = 1.0
_TRACE: Final = "\n".join(
    json.dumps({"timestamp": 1000 * n, "input_length": 1024, "output_length": 9, "hash_ids": [0, n]})
    for n in range(200)
)
_MODELS: Final = ("llama-3.1-8b", "llama-3.1-70b", "deepseek-v3", "gpt-oss-120b", "no-such-model")


@dataclass(slots=True)
class Soaked:
    """What a soak saw: answers by status, and over time memory of all processes and answers until then. [B], [1]"""

    answers: Counter[int] = field(default_factory=Counter)
    memory_bytes: list[int] = field(default_factory=list)
    answered: list[int] = field(default_factory=list)

    @property
    def faults(self) -> int:
        """Answers of the service's own fault; 503 is a refusal in words, which load may earn."""
        return sum(count for status, count in self.answers.items() if status >= 500 and status != 503)

    @property
    def grown_ratio(self) -> float:
        """Memory in the last quarter over that in the one before the middle, when caches have filled. [1]"""
        quarter = max(1, len(self.memory_bytes) // 4)
        before = statistics.median(self.memory_bytes[quarter : 2 * quarter] or self.memory_bytes)
        return statistics.median(self.memory_bytes[-quarter:]) / before

    @property
    def grown_bytes_per_answer(self) -> float:
        """Slope of memory over answers in the second half of the time, by least squares; 0 until all is warm. [B]"""
        warm = sum(count < WARM_AFTER_ANSWERS for count in self.answered)
        half = max(len(self.answered) // 2, warm)
        try:
            return statistics.linear_regression(self.answered[half:], self.memory_bytes[half:]).slope
        except statistics.StatisticsError:
            return 0.0

    @property
    def is_well(self) -> bool:
        """No fault, and memory that is as flat at the end as a leak of every answer would not leave it."""
        return (
            not self.faults
            and self.grown_ratio <= MOST_GROWN_RATIO
            and self.grown_bytes_per_answer <= MOST_GROWN_BYTES_PER_ANSWER
        )


def soak(seconds: float, folder: Path) -> Soaked:
    """Load a new service for so long. [s]"""
    url = f"sqlite:///{folder / 'soak.db'}"
    prepare(Settings(database_url=SecretStr(url)))
    engine = make_engine(url)
    key, _ = KeyRepository(engine).create(scope="quote", label="soak", owner="finance", author="soak")
    engine.dispose()
    seen, ended = Soaked(), Event()
    settings = {
        "database_url": url,
        "workers": "2",
        "rate_per_s": "0",
        "answers_mib": "1",
        "log_level": "warning",
    }
    service = Replica(folder, "soak", settings)
    with service:
        once(service.is_answering, "the service answers")
        callers = [Thread(target=_call, args=(service.address, key, n, ended, seen)) for n in range(CALLERS)]
        for caller in callers:
            caller.start()
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            seen.memory_bytes.append(sum(_resident_bytes(pid) for pid in _with_children(service.pid)))
            seen.answered.append(seen.answers.total())
            time.sleep(_SAMPLE_S)
        ended.set()
        for caller in callers:
            caller.join(PATIENCE_S)
        assert service.is_answering()
    return seen


def _call(address: str, key: str, seed: int, ended: Event, seen: Soaked) -> None:
    drawn = random.Random(seed)
    with httpx.Client(base_url=address, timeout=PATIENCE_S, headers={"X-API-Key": key}) as client:
        while not ended.is_set():
            method, path, more = _request(drawn)
            try:
                seen.answers[client.request(method, path, **more).status_code] += 1
            except httpx.TransportError:
                seen.answers[599] += 1


def _request(drawn: random.Random) -> tuple[str, str, Mapping[str, Any]]:
    model, ctx = drawn.choice(_MODELS), drawn.randint(1000, 32_000)
    asked = f"model={model}&gpu=h100&ctx={ctx}"
    body = {"model": model, "gpu": "h100", "ctx": ctx, "attribution": "step"}
    kinds: list[tuple[int, str, str, dict[str, Any]]] = [
        (60, "GET", f"/quote?{asked}", {}),
        (10, "GET", f"/quote.csv?{asked},{ctx + 1}", {}),
        (5, "GET", f"/quote?{asked}&wrong=1", {}),
        (5, "GET", drawn.choice(("/models", "/gpus", "/prices?gpu=h100", "/api-prices", "/readyz", "/")), {}),
        (5, "POST", "/quote", {"json": body}),
        (5, "POST", "/quotes/batch", {"json": {"rows": [body] * 20}}),
        (3, "POST", "/traces", {"content": _TRACE, "headers": {"Content-Type": "application/x-ndjson"}}),
        (2, "POST", "/quotes", {"json": body}),
        (2, "GET", "/quotes?limit=10", {}),
        (2, "GET", f"/launch-check?{asked}&users=100", {}),
        (1, "GET", f"/curve?{asked}", {}),
        (1, "GET", f"/quote.xlsx?{asked}&attribution=step", {}),
    ]
    _, method, path, more = drawn.choices(kinds, weights=[one[0] for one in kinds])[0]
    return method, path, more


def _with_children(pid: int) -> list[int]:
    found = [pid]
    for parent in found:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            found += [int(child) for child in task.read_text(encoding="ascii").split()]
    return found


def _resident_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:")), 0)


def main(seconds: float) -> int:
    """Soak, and say what was seen; answers 1 where it was not well."""
    with tempfile.TemporaryDirectory() as folder:
        seen = soak(seconds, Path(folder))
    print(f"{seen.answers.total()} answers in {seconds:g} s: {dict(sorted(seen.answers.items()))}")
    megabytes = [one / 1e6 for one in seen.memory_bytes]
    print(
        f"memory of all processes: {min(megabytes):.0f} to {max(megabytes):.0f} MB, last {megabytes[-1]:.0f} MB, "
        f"last quarter over the second {seen.grown_ratio:.3f}, "
        f"{seen.grown_bytes_per_answer:.0f} B an answer in the second half"
    )
    return int(not seen.is_well)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if sys.argv[1:] else SECONDS))
