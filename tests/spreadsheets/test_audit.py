"""The audit workbook, recalculated by LibreOffice, gives the service's numbers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from costsvc.db.snapshot import Catalog
from costsvc.quoting.audit.workbook import audit_workbook
from costsvc.quoting.quote import make_quote
from costsvc.quoting.request import parse_request
from tests.api.conftest import TODAY
from tests.spreadsheets.conftest import Office, named

# Every kind of attention, dense and MoE; with and without objectives, prefix hits, a rate, pools, layouts.
MODELS = (
    "falcon-7b",
    "llama-3-8b",
    "llama-3-70b",
    "gemma-3-27b",
    "llama-4-scout",
    "deepseek-v3",
    "deepseek-v3.2",
    "deepseek-v4-pro",
    "gpt-oss-120b",
    "qwen3-next-80b-a3b",
    "nemotron-h-56b",
    "minimax-m1",
    "mixtral-8x7b",
)
QUOTES: tuple[Mapping[str, Any], ...] = (
    *({"model": model, "gpu": "h200", "ctx": 2048, "slo": "batch"} for model in MODELS),
    *({"model": model, "gpu": "b200", "ctx": 2000, "hit_rate": 0.4} for model in MODELS),
    {"model": "llama-3-70b", "gpu": "h100", "ctx": 8192},
    {"model": "llama-3-70b", "gpu": "h100", "ctx": 8192, "rps": 3, "margin": 0.2, "currency": "EUR"},
    {"model": "llama-3-70b", "gpu": "h200", "ctx": 8192, "mode": "disaggregated"},
    {"model": "llama-3-70b", "gpu": "h100", "ctx": 4096, "allocation": "contiguous", "weights": "fp8"},
    {"model": "llama-3-8b", "gpu": "h100", "ctx": 8192, "prefix_tokens": 2000, "turns": 3},
    {"model": "llama-3.1-8b", "gpu": "l40s", "ctx": 32768, "ttft_ms": 4000, "tpot_ms": 60},
    {"model": "deepseek-v3", "gpu": "h200", "ctx": 8192, "stack": "sglang"},
)


def test_at_least_thirty_quotes_of_all_kinds_recalculate_to_the_services_numbers(
    catalog: Catalog, office: Office, tmp_path: Path
) -> None:
    assert len(QUOTES) >= 30
    actions = []
    for number, asked in enumerate(QUOTES):
        path = tmp_path / f"{number}.xlsx"
        path.write_bytes(audit_workbook(catalog, parse_request(asked), TODAY))
        actions.append({"open": f"file://{path}", "sheet": "Quote", "columns": 6})
    for asked, (table,) in zip(QUOTES, office(actions), strict=True):
        answer: Any = make_quote(catalog, parse_request(asked), TODAY)
        lines = named(table)
        wrong = {name for name, row in lines.items() if any(cell["error"] for cell in row)}
        assert not wrong, asked
        differing = {name for name, row in lines.items() if row[4]["formula"] and row[5]["value"] != 1}
        assert not differing, (asked, {name: [cell["value"] for cell in lines[name]] for name in differing})
        for kind in ("input", "cached_input", "output", "blended"):
            expected = float(answer["prices"][kind]["usd_per_mtok"])
            assert lines[kind][1]["value"] == pytest.approx(expected, rel=1e-6), asked
        assert lines["bound holds"][1]["value"] == 1
