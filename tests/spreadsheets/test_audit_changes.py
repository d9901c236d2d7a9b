"""Live inputs of the audit workbook, changed in LibreOffice, change its prices as the service would."""

from pathlib import Path
from typing import Any

import pytest

from costsvc.db.snapshot import Catalog
from costsvc.quoting.audit.workbook import audit_workbook
from costsvc.quoting.quote import make_quote
from costsvc.quoting.request import parse_request
from tests.api.conftest import TODAY
from tests.spreadsheets.conftest import Office, named

CHANGES: tuple[tuple[dict[str, float], dict[str, Any]], ...] = (
    (
        {"gpu_usd_per_hour": 2.5, "utilization": 0.6, "margin": 0.25},
        {"price_usd_per_gpu_hour": "2.5", "utilization": 0.6, "margin": 0.25},
    ),
    ({"output_tokens": 256}, {"output": 256}),
    ({"context_tokens": 6000, "output_tokens": 512}, {"ctx": 6000, "output": 512}),
    ({"objective_tpot_s": 0.04, "context_tokens": 8192}, {"ctx": 8192, "output": 512, "tpot_ms": 40}),
    (
        {"objective_tpot_s": 0.05, "hit_rate": 0.3},
        {"ctx": 8192, "output": 512, "hit_rate": 0.3, "tpot_ms": 50},
    ),
)


@pytest.mark.parametrize("model", ["llama-3-70b", "gpt-oss-120b"])
def test_a_changed_input_changes_the_price_as_the_service_would(
    catalog: Catalog, office: Office, tmp_path: Path, model: str
) -> None:
    asked = {"model": model, "gpu": "h100", "ctx": 8192, "output": 512, "hit_rate": 0.2}
    first: Any = make_quote(catalog, parse_request(asked), TODAY)
    layout = {name: first["deployment"][name] for name in ("tp", "pp", "dp", "ep")}
    path = tmp_path / "quote.xlsx"
    path.write_bytes(audit_workbook(catalog, parse_request({**asked, **layout}), TODAY))
    changes = [change for change, _ in CHANGES]
    action = {"open": f"file://{path}", "sheet": "Quote", "columns": 2, "changes": changes}
    (tables,) = office([action])
    given: dict[str, Any] = {**asked, **layout}
    for (_, parameters), table in zip(CHANGES, tables, strict=True):
        given |= parameters
        answer: Any = make_quote(catalog, parse_request(given), TODAY)
        lines = named(table)
        assert lines["bound holds"][1]["value"] == 1
        assert lines["request usd"][1]["value"] == pytest.approx(
            float(answer["cost"]["request_usd"]), rel=1e-6
        )
        for kind in ("input", "cached_input", "output"):
            # The service may take more nodes for the changed request than this workbook has.
            expected = float(answer["prices"][kind]["usd_per_mtok"])
            assert lines[kind][1]["value"] == pytest.approx(expected, rel=5e-3), (parameters, kind)


def test_efficiencies_and_memory_utilization_are_live(
    catalog: Catalog, office: Office, tmp_path: Path
) -> None:
    asked = {"model": "llama-3-8b", "gpu": "h100", "ctx": 8192, "slo": "batch", "tp": 1}
    path = tmp_path / "quote.xlsx"
    path.write_bytes(audit_workbook(catalog, parse_request(asked), TODAY))
    changes: list[dict[str, float]] = [{}, {"memory_utilization_share": 0.5}, {"gemm_bf16_mfu_share": 0.2}]
    action = {"open": f"file://{path}", "sheet": "Quote", "columns": 2, "changes": changes}
    (tables,) = office([action])
    before, less_memory, slower = (named(table) for table in tables)
    assert less_memory["concurrency"][1]["value"] < 0.7 * before["concurrency"][1]["value"]
    assert less_memory["request usd"][1]["value"] > before["request usd"][1]["value"]
    assert slower["request usd"][1]["value"] > 1.5 * less_memory["request usd"][1]["value"]
    for lines in (before, less_memory, slower):
        paid = lines["prices times tokens"][1]["value"]
        assert paid == pytest.approx(lines["request usd"][1]["value"], rel=1e-9)
