"""A running LibreOffice in a language of its own, and a running service for it to ask."""

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from costsvc.db.snapshot import Catalog
from tests.browser.service import serving
from tests.engine.shapes import shipped

# It is for another Python, and has no doctests.
collect_ignore = ["office.py"]

SYSTEM_PYTHON = "/usr/bin/python3"
OFFICE = Path(__file__).with_name("office.py")
PATIENCE_S = 60
_PROFILE = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry" xmlns:xs="http://www.w3.org/2001/XMLSchema"
 xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><item oor:path="/org.openoffice.Setup/L10N"><prop
 oor:name="ooSetupSystemLocale" oor:op="fuse"><value>{locale}</value></prop></item>
<item oor:path="/org.openoffice.Office.Calc/Formula/Calculation"><prop
 oor:name="UseThreadedCalculationForFormulaGroups" oor:op="fuse"><value>false</value></prop></item></oor:items>
"""
# Threads of its own gain LibreOffice nothing beside tests that run in several processes, and it may crash in them.

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


@contextmanager
def office_running(locale: str, profile: Path) -> Iterator[Office]:
    """LibreOffice in a locale, with a profile of its own."""
    (profile / "user").mkdir(parents=True)
    (profile / "user" / "registrymodifications.xcu").write_text(_PROFILE.format(locale=locale))
    port = free_port()
    command = ["soffice", f"-env:UserInstallation=file://{profile}", "--headless", "--norestore"]
    accept = f"--accept=socket,host=127.0.0.1,port={port};urp;"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([*command, accept], start_new_session=True, **quiet)  # type: ignore[call-overload]

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

    try:
        yield act
    finally:
        os.killpg(process.pid, 15)
        process.wait(PATIENCE_S)


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
    with ExitStack() as running:

        @cache
        def start(locale: str) -> Office:
            return running.enter_context(office_running(locale, tmp_path_factory.mktemp(f"office-{locale}")))

        yield start


@pytest.fixture(scope="session")
def office(office_in: Callable[[str], Office]) -> Office:
    """LibreOffice as an American has it."""
    return office_in("en-US")


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a service over the shipped catalog listens."""
    with serving(tmp_path_factory.mktemp("sheets") / "costsvc.db") as address:
        yield address
