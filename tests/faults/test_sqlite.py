"""Two processes that write to one SQLite file are killed in the middle: nothing acknowledged is lost or torn.

`make faults` kills them 200 times; here it is ten.
"""

import multiprocessing
import os
import random
import sqlite3
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from costsvc.db.engine import make_engine
from costsvc.db.migrate import upgrade
from costsvc.db.repository import CatalogRepository
from tests.db.examples import CONTENT
from tests.faults.writers import content_of, store_catalogs, store_quotes

KILLS = 10 * int(os.environ.get("COSTSVC_TEST_REPEATS", "1"))
LONGEST_S = 0.3
PATIENCE_S = 60


def test_writers_that_are_killed_lose_and_tear_nothing(tmp_path: Path) -> None:
    path = tmp_path / "costsvc.db"
    url = f"sqlite:///{path}"
    engine = make_engine(url)
    upgrade(engine)
    CatalogRepository(engine).store(CONTENT, author="tests", note="")
    engine.dispose()
    # Started from a process that has loaded what they need and holds neither threads nor connections.
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["tests.faults.writers"])
    drawn = random.Random(1)
    quotes: set[str] = set()
    revisions: set[int] = {1}
    kept: set[str] = set()
    stored: set[int] = set()
    for _ in range(KILLS):
        acknowledged = _killed(processes, url, drawn.uniform(0, LONGEST_S))
        quotes |= {one for one in acknowledged if isinstance(one, str)}
        revisions |= {one for one in acknowledged if isinstance(one, int)}
        with sqlite3.connect(path) as database:
            assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert database.execute("PRAGMA foreign_key_check").fetchall() == []
            kept = _quotes(database)
            stored = {number for (number,) in database.execute("SELECT id FROM revision")}
        database.close()
        assert quotes <= kept
        assert revisions <= stored
        assert stored == set(range(1, max(stored) + 1))
    print(
        f"{KILLS} kills: {len(quotes)} quotes and {len(revisions)} revisions acknowledged, {len(kept)} quotes kept"
    )
    assert len(quotes) >= KILLS
    assert len(revisions) > KILLS // 2
    engine = make_engine(url)
    for number in (1, max(stored)):
        assert CatalogRepository(engine).load(number).models == CONTENT.models
    engine.dispose()


def _killed(processes: Any, url: str, after_s: float) -> list[object]:
    """What two writers acknowledged, which were killed so long after both had begun."""
    heard: list[object] = []
    pipes: list[Connection] = []
    writers = []
    for work in (store_quotes, store_catalogs):
        hears, says = processes.Pipe(duplex=False)
        writer = processes.Process(target=work, args=(url, says), daemon=True)
        writer.start()
        says.close()
        pipes.append(hears)
        writers.append(writer)
    for pipe in pipes:
        assert pipe.poll(PATIENCE_S), "a writer writes nothing"
    wait([writer.sentinel for writer in writers], after_s)
    for writer in writers:
        assert writer.is_alive(), "a writer failed"
        writer.kill()
    for pipe, writer in zip(pipes, writers, strict=True):
        writer.join()
        heard += _rest(pipe)
        pipe.close()
    return heard


def _rest(pipe: Connection) -> list[object]:
    """All that was said before the end; a word that was cut off was no acknowledgement."""
    heard: list[object] = []
    try:
        while True:
            heard.append(pipe.recv())
    except (EOFError, OSError):
        return heard


def _quotes(database: sqlite3.Connection) -> set[str]:
    """Ids of stored quotes, each with both of its formats, whole."""
    formats: dict[str, int] = {}
    for id, content in database.execute("SELECT quote_id, content FROM stored_quote_format"):
        assert content == content_of(id)
        formats[id] = formats.get(id, 0) + 1
    kept = [id for (id,) in database.execute("SELECT id FROM stored_quote")]
    assert formats == dict.fromkeys(kept, 2)
    return set(kept)
