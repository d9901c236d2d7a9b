"""One quote on the command line."""

import csv
import io
import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from click.testing import CliRunner

from costsvc.cli import main
from costsvc.quoting.request import QuoteRequest
from tests.cli.conftest import Process, Run

QUOTE = ("quote", "llama-3-70b", "h100", "--ctx", "8192")


def test_a_quote_is_a_table_that_names_prices_deployment_and_gpu_price(process: Process) -> None:
    done = process(*QUOTE)
    assert (done.returncode, done.stderr) == (0, "")
    for words in ("USD per 1,000,000 tokens", "Cached input", "llama-3-70b on", "GPU price", "TPOT"):
        assert words in done.stdout


def test_the_table_is_in_the_currency_that_its_heading_names(run: Run) -> None:
    shown = run(*QUOTE, "--currency", "eur").stdout
    output = json.loads(run(*QUOTE, "--currency", "eur", "--format", "json").stdout)["prices"]["output"]
    assert "EUR per 1,000,000 tokens" in shown
    assert f"{float(output['eur_per_mtok']):.4f}" in shown
    assert f"{float(output['usd_per_mtok']):.4f}" not in shown


def test_the_formats_give_the_same_numbers(run: Run) -> None:
    answer = json.loads(run(*QUOTE, "--format", "json").stdout)
    (row,) = csv.DictReader(io.StringIO(run(*QUOTE, "--format", "csv").stdout))
    assert row["output_usd_per_mtok"] == answer["prices"]["output"]["usd_per_mtok"]
    assert row["gpus"] == str(answer["deployment"]["gpus"])
    assert Decimal(row["output_low_usd_per_mtok"]) < Decimal(row["output_usd_per_mtok"])


def test_every_parameter_of_the_service_is_an_option() -> None:
    shown = CliRunner().invoke(main, ["quote", "--help"], terminal_width=200).output
    for name in QuoteRequest.model_fields:
        spelled = name.upper() if name in ("model", "gpu") else f"--{name.replace('_', '-')}"
        assert spelled in shown


def test_options_reach_the_quote(run: Run) -> None:
    done = run(*QUOTE, "--kv-cache", "off", "--trace", "--price-usd-per-gpu-hour", "2.5", "--format", "json")
    answer = json.loads(done.stdout)
    assert answer["deployment"]["kv_cache"] == "off"
    assert answer["cost"]["gpu_price"]["usd_per_gpu_hour"] == "2.50000000"
    assert answer["trace"]


def test_a_profile_is_read_from_a_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "chat.json").write_text(
        '{"input_tokens": 6000, "output_tokens": 400, "system_prompt_tokens": 1500}', encoding="utf-8"
    )
    done = run("quote", "llama-3-70b", "h100", "--profile", "chat.json", "--format", "json")
    assert json.loads(done.stdout)["request"]["input_tokens"] == 6000


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (
            ("quote", "llama-3-70b", "h1000", "--ctx", "8192"),
            1,
            "Error: No gpu 'h1000' in the catalog. Nearest:",
        ),
        ((*QUOTE, "--gpus", "1"), 1, "It fits on gpus="),
        ((*QUOTE, "--output", "x"), 2, "Error: output is 'x'"),
        ((*QUOTE, "--ctx", "9"), 2, "Parameter 'ctx' is given more than once"),
        (("quote", "llama-3-70b", "h100"), 2, "give the context per request"),
        ((*QUOTE, "--colour", "blue"), 2, "No such option"),
        (("quote",), 2, "Missing argument 'MODEL'"),
        (("qoute",), 2, "No such command"),
    ],
)
def test_what_goes_wrong_is_said_on_standard_error(
    run: Run, arguments: tuple[str, ...], status: int, words: str
) -> None:
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (status, "")
    assert words in done.stderr


def test_an_environment_that_makes_no_sense_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COSTSVC_PORT", "none")
    done = run(*QUOTE)
    assert done.exit_code == 2
    assert "port is 'none'" in done.stderr


@pytest.mark.parametrize("command", ["costsvc.cli", "costsvc.cli.quote", "costsvc.cli.points"])
def test_quoting_from_files_waits_for_no_web_framework_and_no_database_driver(command: str) -> None:
    program = (
        f"import sys, {command}; print(sorted({{'litestar', 'sqlalchemy', 'uvicorn'}} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_list_of_commands_is_shown_without_importing_them() -> None:
    program = "import sys; from costsvc.cli import main; main(['--help'], standalone_mode=False)"
    check = "; print('costsvc.engine.specs' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program + check], capture_output=True, text=True, check=True)
    assert "predict" in done.stdout
    assert done.stdout.endswith("False\n")
