"""`costsvc batch`: the batch call without a service."""

import csv
import io
from pathlib import Path

import openpyxl
import pytest
from click.testing import CliRunner

from costsvc.cli.batch import batch

ROWS = "label,model,gpu,ctx\na,llama-3-8b,h100,8192\nb,nothing,h100,8192\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    path.write_text(ROWS)
    return path


def test_rows_come_out_in_order_and_a_failed_one_sets_the_exit_status(file: Path) -> None:
    ran = CliRunner().invoke(batch, [str(file)])
    assert ran.exit_code == 1
    assert "1 of 2 rows have no price" in ran.stderr
    first, second = csv.DictReader(io.StringIO(ran.stdout))
    assert (first["label"], first["error"]) == ("a", "")
    assert float(first["output_usd_per_mtok"]) > 0
    assert "No model 'nothing'" in second["error"]


def test_a_workbook_goes_to_the_file_that_out_names(file: Path, tmp_path: Path) -> None:
    file.write_text("".join(ROWS.splitlines(keepends=True)[:2]))
    out = tmp_path / "prices.xlsx"
    ran = CliRunner().invoke(batch, [str(file), "--out", str(out)])
    assert (ran.exit_code, ran.output) == (0, "")
    head, row = openpyxl.load_workbook(out).worksheets[0].iter_rows(values_only=True)
    assert dict(zip(head, row, strict=True))["model"] == "llama-3-8b"


@pytest.mark.parametrize(
    ("more", "said"),
    [(["--format", "xlsx"], "give --out"), (["--out", "prices.ods"], "end it in .csv, .json or .xlsx")],
)
def test_what_cannot_be_written_is_bad_usage(file: Path, more: list[str], said: str) -> None:
    ran = CliRunner().invoke(batch, [str(file), *more])
    assert ran.exit_code == 2
    assert said in ran.stderr
