"""Commands as a person calls them: in a folder that holds nothing, with nothing set."""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from costsvc.cli import main
from costsvc.ingest.files import read_catalog

Run = Callable[..., Result]
Process = Callable[..., "subprocess.CompletedProcess[str]"]
PATIENCE_S = 120

# The shipped files take a second to read and do not change between tests.
read_once = cache(read_catalog)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `costsvc` inside this process."""
    for name in os.environ:
        if name.startswith("COSTSVC_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("costsvc.cli.catalogs.read_catalog", read_once)

    def run(*arguments: str, stdin: str = "") -> Result:
        # Standard input has no name here, so a table is a file, as it mostly is.
        (tmp_path / "stdin.csv").write_text(stdin, encoding="utf-8")
        named = ["stdin.csv" if argument == "-" else argument for argument in arguments]
        return CliRunner().invoke(main, named)

    return run


@pytest.fixture
def process(tmp_path: Path) -> Process:
    """Runs `costsvc` as a process of its own."""
    bare = {name: text for name, text in os.environ.items() if not name.startswith("COSTSVC_")}

    def process(*arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-c", "from costsvc.cli import main; main()", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=bare,
            timeout=PATIENCE_S,
            check=False,
        )

    return process
