"""A running LibreOffice in a language of its own, and a running service for it to ask."""

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import uvicorn

from costsvc.app import create_app
from costsvc.cli.serve import prepare
from costsvc.db.snapshot import Catalog
from tests.api.conftest import TODAY, settings_for
from tests.engine.shapes import shipped

# It is for another Python, and has no doctests.
collect_ignore = ["office.py"]

SYSTEM_PYTHON = "/usr/bin/python3"
OFFICE = Path(__file__).with_name("office.py")
PATIENCE_S = 60
_PROFILE = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry" xmlns:xs="http://www.w3.org/2001/XMLSchema"
 xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><item oor:path="/org.openoffice.Setup/L10N"><prop
 oor:name="ooSetupSystemLocale" oor:op="fuse"><value>{locale}</value></prop></item></oor:items>
"""

Office = Callable[[list[dict[str, Any]]], list[Any]]


def bridge_is_there() -> bool:
    asked = [SYSTEM_PYTHON, "-c", "import uno"]
    return (
        shutil.which("soffice") is not None
        and subprocess.run(asked, capture_output=True, check=False).returncode == 0
    )


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def named(table: list[list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """The lines of a workbook's first sheet by their names."""
    return {row[0]["text"]: row for row in table[4:]}


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return shipped()


@pytest.fixture(scope="session")
def office_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Office]]:
    """Starts LibreOffice in a locale, once each."""
    if not bridge_is_there():
        pytest.skip("No LibreOffice with its Python bridge: apt install libreoffice-calc python3-uno.")
    running: dict[str, tuple[subprocess.Popen[bytes], int]] = {}

    def start(locale: str) -> Office:
        if locale not in running:
            profile = tmp_path_factory.mktemp(f"office-{locale}")
            (profile / "user").mkdir()
            (profile / "user" / "registrymodifications.xcu").write_text(_PROFILE.format(locale=locale))
            port = free_port()
            command = ["soffice", f"-env:UserInstallation=file://{profile}", "--headless", "--norestore"]
            accept = f"--accept=socket,host=127.0.0.1,port={port};urp;"
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            process = subprocess.Popen([*command, accept], start_new_session=True, **quiet)  # type: ignore[call-overload]
            running[locale] = (process, port)
        port = running[locale][1]

        def act(actions: list[dict[str, Any]]) -> list[Any]:
            ran = subprocess.run(
                [SYSTEM_PYTHON, str(OFFICE), str(port)],
                input=json.dumps(actions),
                capture_output=True,
                text=True,
                timeout=600,
                check=False,
                env={"PATH": os.environ["PATH"]},
            )
            assert ran.returncode == 0, ran.stderr
            return list(json.loads(ran.stdout))

        return act

    yield start
    for process, _ in running.values():
        os.killpg(process.pid, 15)
        process.wait(PATIENCE_S)


@pytest.fixture(scope="session")
def office(office_in: Callable[[str], Office]) -> Office:
    """LibreOffice as an American has it."""
    return office_in("en-US")


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a service over the shipped catalog listens."""
    path = tmp_path_factory.mktemp("sheets") / "costsvc.db"
    prepare(settings_for(path))
    app = create_app(settings_for(path), today=lambda: TODAY)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, access_log=False))
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + PATIENCE_S
    while not server.started and time.monotonic() < deadline:
        time.sleep(0.02)
    host, port = server.servers[0].sockets[0].getsockname()[:2]
    yield f"http://{host}:{port}"
    server.should_exit = True
    thread.join(PATIENCE_S)
