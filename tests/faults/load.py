"""Callers that go on whatever happens, and remember every answer: what was wrong, what failed, what was kept."""

import itertools
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import Any, Self
from uuid import uuid4

import httpx

PATIENCE_S = 60
_COMPARED = ("request", "deployment", "cost", "prices", "concurrency", "memory", "latency")
_PAUSE_S = 0.02


@dataclass(slots=True)
class Seen:
    """What callers saw. `kept` are stored quotes that were acknowledged, by idempotency key."""

    reads: Counter[str] = field(default_factory=Counter)
    writes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    revisions: set[int] = field(default_factory=set)
    kept: dict[str, str] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    lock: Lock = field(default_factory=Lock)

    @property
    def failed_reads(self) -> int:
        """Reads that got an answer other than 200."""
        return sum(count for said, count in self.reads.items() if said not in ("200", "broken"))


class Load:
    """Readers and writers against one address, from `with` until its end.

    Parameters
    ----------
    expected : callable
        The right answers to a path at a revision: more than one where two versions of the service answer.
    """

    def __init__(
        self,
        address: str,
        key: str,
        paths: Sequence[str],
        expected: Callable[[str, int], Sequence[Mapping[str, Any]]],
        *,
        readers: int = 3,
        writers: int = 2,
    ) -> None:
        self.seen = Seen()
        self._address = address
        self._key = key
        self._name = uuid4().hex
        self._paths = paths
        self._expected = expected
        self._stopped = Event()
        self._threads = [Thread(target=self._read, args=(number,)) for number in range(readers)]
        self._threads += [Thread(target=self._write, args=(number,)) for number in range(writers)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join(PATIENCE_S * 2)
            assert not thread.is_alive(), "a caller hangs"

    def progress(self) -> int:
        """Reads answered rightly until now."""
        return self.seen.reads["200"]

    def _read(self, seed: int) -> None:
        drawn = random.Random(seed)
        with httpx.Client(base_url=self._address, timeout=PATIENCE_S) as client:
            while not self._stopped.is_set():
                path = drawn.choice(self._paths)
                try:
                    answer = client.get(path)
                except httpx.TransportError:
                    self._count(self.seen.reads, "broken")
                    continue
                self._count(self.seen.reads, str(answer.status_code))
                if answer.status_code == 200:
                    self._compare(path, answer.json())
                self._stopped.wait(_PAUSE_S)

    def _compare(self, path: str, answer: dict[str, Any]) -> None:
        revision = answer["catalog_revision"]
        self.seen.revisions.add(revision)
        rights = self._expected(path, revision)
        if not any(all(answer[name] == right[name] for name in _COMPARED) for right in rights):
            told = {name: (answer[name], [right[name] for right in rights]) for name in _COMPARED}
            self.seen.wrong.append(f"{path} at {revision}: {told}")

    def _write(self, number: int) -> None:
        headers = {"X-API-Key": self._key}
        with httpx.Client(base_url=self._address, timeout=PATIENCE_S, headers=headers) as client:
            for count in itertools.count():
                if self._stopped.is_set():
                    return
                self._keep(client, f"{self._name}, writer {number}, quote {count}")

    def _keep(self, client: httpx.Client, once: str) -> None:
        """Store a quote, and send it again under its key until it is acknowledged."""
        self.seen.begun.add(once)
        # Of this attribution the workbook is a plain table, which takes least time to make.
        body = {"model": "llama-3-70b", "gpu": "h100", "ctx": 4096, "attribution": "step", "label": once}
        while not self._stopped.is_set():
            try:
                answer = client.post("/quotes", json=body, headers={"Idempotency-Key": once})
            except httpx.TransportError:
                self._count(self.seen.writes, "broken")
                time.sleep(_PAUSE_S)
                continue
            self._count(self.seen.writes, str(answer.status_code))
            if answer.status_code == 201:
                self.seen.kept[once] = answer.json()["id"]
                return
            self._stopped.wait(_PAUSE_S * 5)

    def _count(self, counter: Counter[str], said: str) -> None:
        with self.seen.lock:
            counter[said] += 1
