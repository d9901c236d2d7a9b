"""Tables of points: a row per row, in order, and the reason where there is no answer."""

import csv
import io
from pathlib import Path

import pytest

from costsvc.cli.points import CAPACITY, PREDICTED
from tests.cli.conftest import Process, Run

PREDICT_HEADER = (
    "id,output_tok_s,output_tok_s_low,output_tok_s_high,ttft_ms,tpot_ms,concurrency,bound,extrapolated,error"
)
CAPACITY_HEADER = (
    "id,kv_bytes_per_token_per_gpu,weights_gib_per_gpu,kv_gib_per_gpu,kv_tokens,max_concurrency,error"
)
POINTS = """\
id,model,gpu,n_gpus,tp,pp,weight_dtype,isl,osl,concurrency,notes
a,meta-llama/Meta-Llama-3-70B,H100,4,4.0,1.0,fp8,1024.0,256.0,16.0,"one, two"
b,nobody/nothing,h100,1,,,,1024,256,,
c,meta-llama/Meta-Llama-3-70B,h100,8,8,,,1024,256,,
"""


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_each_row_has_its_answer_or_its_reason_in_the_order_of_the_rows(run: Run, tmp_path: Path) -> None:
    (tmp_path / "points.csv").write_text(POINTS, encoding="utf-8")
    done = run("predict", "points.csv")
    assert done.exit_code == 1
    assert done.stderr == ""
    assert done.stdout.splitlines()[0] == PREDICT_HEADER
    first, second, third = rows(done.stdout)
    assert [row["id"] for row in (first, second, third)] == ["a", "b", "c"]
    assert float(first["output_tok_s_low"]) < float(first["output_tok_s"]) < float(first["output_tok_s_high"])
    assert (first["concurrency"], first["error"]) == ("16", "")
    assert second["error"].startswith("No model 'nobody/nothing' in the catalog.")
    assert second["output_tok_s"] == ""
    assert float(third["concurrency"]) > 16


def test_a_table_comes_through_a_pipe_and_only_answers_leave_through_it(process: Process) -> None:
    done = process("predict", "-", stdin="\n".join(POINTS.splitlines()[:2]))
    assert (done.returncode, done.stderr, len(rows(done.stdout))) == (0, "", 1)


def test_the_schema_of_disaggregated_measurements_is_read_too(run: Run) -> None:
    table = (
        "id,backend,model_path,system,precision,isl,osl,concurrency,prefill_num_workers,prefill_tp_size,"
        "decode_num_workers,decode_tp_size,decode_pp_size,decode_attention_dp_size,decode_moe_ep_size\n"
        "d,trtllm,deepseek-ai/DeepSeek-V3,gb200,fp4,1024,1024,64.0,1.0,4,1.0,8,1,1,8\n"
    )
    (row,) = rows(run("predict", "-", stdin=table).stdout)
    assert (row["id"], row["error"]) == ("d", "")
    assert float(row["output_tok_s"]) > 0


def test_capacity_answers_row_by_row_and_uses_a_given_budget(run: Run) -> None:
    table = (
        "id,model,weight_dtype,kv_dtype,gpu,tp,pp,engine,version,gpu_memory_utilization,max_model_len,kv_gib_per_gpu\n"
        "a,meta-llama/Meta-Llama-3-70B,bf16,bf16,,1.0,,,,,8192.0,80\n"
        "b,meta-llama/Meta-Llama-3-70B,,,H100,,,vLLM,,0.9,,\n"
    )
    done = run("capacity", "-", stdin=table)
    assert done.stdout.splitlines()[0] == CAPACITY_HEADER
    given, refused = rows(done.stdout)
    assert (given["kv_bytes_per_token_per_gpu"], given["kv_gib_per_gpu"]) == ("327680", "80")
    assert (given["kv_tokens"], given["max_concurrency"]) == ("262144", "32")
    assert "weights alone take" in refused["error"]
    assert done.exit_code == 1


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("", "is empty. Its first line must name the columns"),
        ("id,gpu\n1,h100\n", "has no column 'model'. Its columns are: id, gpu"),
        ("model,gpu,model\n", "more than one column 'model'"),
    ],
)
def test_a_table_that_is_none_is_bad_usage(run: Run, table: str, words: str) -> None:
    done = run("predict", "-", stdin=table)
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in done.stderr


def test_a_file_that_is_not_there_is_bad_usage(run: Run) -> None:
    assert run("predict", "nowhere.csv").exit_code == 2


def test_a_file_in_another_encoding_says_so(run: Run, tmp_path: Path) -> None:
    (tmp_path / "latin.csv").write_bytes(b"model,gpu,id\nllama,h100,\xe9\n")
    done = run("predict", "latin.csv")
    assert (done.exit_code, "is not CSV in UTF-8" in done.stderr) == (2, True)


def test_a_byte_order_mark_and_blank_lines_are_no_rows(run: Run) -> None:
    done = run("predict", "-", stdin=f"\ufeff{POINTS.replace(chr(10), chr(10) * 2)}")
    assert [row["id"] for row in rows(done.stdout)] == ["a", "b", "c"]


def test_a_row_longer_than_the_header_is_refused_alone(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("costsvc.cli.points.predict_point", lambda *_: {"output_tok_s": 1.5})
    done = run("predict", "-", stdin="id,model,gpu\n1,m,g,more\n2,m,g\n")
    first, second = rows(done.stdout)
    assert first["error"] == "The row has more cells than the header has columns."
    assert (second["output_tok_s"], second["error"]) == ("1.5", "")


@pytest.mark.parametrize("answer", [{"output_tok_s": float("nan")}, None])
def test_a_fault_of_ours_in_one_row_is_said_there_and_stops_nothing(
    run: Run, monkeypatch: pytest.MonkeyPatch, answer: dict[str, float] | None
) -> None:
    monkeypatch.setattr("costsvc.cli.points.predict_point", lambda *_: answer)
    done = run("predict", "-", stdin="id,model,gpu\n1,m,g\n2,m,g\n")
    assert [row["error"].partition(":")[0] for row in rows(done.stdout)] == ["Internal error"] * 2
    assert done.exit_code == 1


def test_columns_are_those_of_the_contract() -> None:
    assert ",".join(PREDICTED) == PREDICT_HEADER
    assert ",".join(CAPACITY) == CAPACITY_HEADER


class Terminal(io.StringIO):
    """Standard error of somebody who watches."""

    def isatty(self) -> bool:
        """A terminal is one."""
        return True


def test_who_watches_sees_progress_beside_the_answers(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("costsvc.cli.points.predict_point", lambda *_: {"output_tok_s": 1.5})
    monkeypatch.setattr("costsvc.cli.points._standard_error", lambda: terminal)
    done = run("predict", "-", stdin="id,model,gpu\n1,m,g\n2,m,g\n")
    assert [row["id"] for row in rows(done.stdout)] == ["1", "2"]
    assert "Rows" in terminal.getvalue()
