"""A configuration becomes a catalog file on the command line."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from costsvc.cli import main
from costsvc.ingest.files import catalog_root
from tests.api.test_imports import CONFIG
from tests.cli.conftest import read_once


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a configuration."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    return tmp_path


def test_a_folder_is_printed_as_a_file_and_explained_beside_it(folder: Path) -> None:
    done = CliRunner().invoke(
        main, ["catalog", "import-hf", str(folder), "--hf-id", "example-org/Example-8B"]
    )
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("# yaml-language-server: $schema=../.schema/model.json\nid: example-8b\n")
    assert "hidden_size: 4096 (hidden_size)" in done.stderr
    assert "open: licence: no configuration states it" in done.stderr
    assert "parameters: 8,030,261,248" in done.stderr


def test_standard_input_is_read(folder: Path) -> None:
    arguments = ["catalog", "import-hf", "-", "--id", "example", "--name", "Example", "--source", "A file"]
    done = CliRunner().invoke(main, arguments, input=(folder / "config.json").read_bytes())
    assert done.exit_code == 0, done.output
    assert "title: A file" in done.stdout


def test_a_new_file_is_written_and_never_replaced(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("costsvc.cli.catalog_import.read_catalog", lambda _: read_once(catalog_root(None)))
    copy = folder / "catalog"
    (copy / "models").mkdir(parents=True)
    shutil.copy(catalog_root(None) / "sources.yaml", copy)
    arguments = [
        *(
            "catalog",
            "import-hf",
            str(folder),
            "--hf-id",
            "example-org/Example-8B",
            "--dir",
            str(copy),
            "--write",
        ),
        *("--given", "licence=MIT", "--given", "released=2026-11-29", "--given-source", "Its card"),
    ]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    written = (copy / "models" / "example-8b.yaml").read_text(encoding="utf-8")
    assert "released: 2026-11-29" in written
    again = CliRunner().invoke(main, arguments)
    assert again.exit_code == 2
    assert "is there already and is never replaced" in again.stderr
    assert (copy / "models" / "example-8b.yaml").read_text(encoding="utf-8") == written


def test_a_name_of_the_catalog_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("costsvc.cli.catalog_import.read_catalog", read_once)
    arguments = ["catalog", "import-hf", str(folder), "--hf-id", "x/Llama_3_70B", "--write"]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 2
    assert "already means the model 'llama-3-70b'" in done.stderr


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--given", "licence=MIT"], "A given fact needs its source"),
        (["--given", "licence", "--given-source", "x"], "'licence' is no fact"),
        (["--given", "license=MIT", "--given-source", "x"], "Did you mean 'licence'?"),
        (["--given", "released=soon", "--given-source", "x"], "Write it as 2026-11-29"),
        (["--given", "published_parameters=many", "--given-source", "x"], "published_parameters is 'many'"),
        (["--id", "../x"], "'../x' is not small letters and digits"),
        (["--name", "a\nb"], "is not one line of letters"),
    ],
)
def test_bad_usage_is_said(more: list[str], said: str, folder: Path) -> None:
    done = CliRunner().invoke(main, ["catalog", "import-hf", str(folder), "--hf-id", "a/b", *more])
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr


def test_what_cannot_be_decided_is_a_failure_that_says_so(folder: Path) -> None:
    done = CliRunner().invoke(main, ["catalog", "import-hf", str(folder)])
    assert (done.exit_code, done.stdout) == (1, "")
    assert "hf_id, or id and name" in done.stderr
