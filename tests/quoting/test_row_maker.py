"""Rows of tables of quotes: solved together or alone, they are the same."""

from datetime import date

from costsvc.db.snapshot import Catalog
from costsvc.quoting.rows import RowMaker

TODAY = date(2026, 11, 29)


def test_rows_solved_together_are_the_rows_solved_alone(catalog: Catalog) -> None:
    shapes: tuple[dict[str, str], ...] = (
        {},
        {"hit_rate": "0.5"},
        {"attribution": "step"},
        {"slo": "batch"},
        {"rps": "3"},
    )
    cards = (("llama-3-70b", "h100"), ("gpt-oss-120b", "h200"), ("gemma-3-27b", "l40s"))
    given = [
        {"model": model, "gpu": gpu, "ctx": str(ctx), **shape}
        for model, gpu in cards
        for shape in shapes
        for ctx in (700, 4_000, 30_000, 10**9)
    ]
    for row, one in zip(RowMaker(catalog, TODAY).rows(given), given, strict=True):
        alone = RowMaker(catalog, TODAY).row(one)
        assert row.keys() == alone.keys()
        for name, value in alone.items():
            assert _read(row[name]) == _read(value), name


def test_a_row_without_a_price_is_of_the_same_names_as_one_with(catalog: Catalog) -> None:
    maker = RowMaker(catalog, TODAY)
    asked = {"model": "meta-llama/Meta-Llama-3-70B", "gpu": "h100"}
    good, refused, unknown = maker.rows(
        [{**asked, "ctx": "4096"}, {**asked, "ctx": "9000"}, {**asked, "gpu": "h1000", "ctx": "4096"}]
    )
    assert (good["error"], "takes at most" in refused["error"]) == ("", True)
    assert [refused[name] for name in ("model", "gpu")] == [good[name] for name in ("model", "gpu")]
    assert (unknown["model"], unknown["gpu"]) == (good["model"], "h1000")


def _read(value: object) -> object:
    """A number to as many digits as both ways of solving agree on, anything else as it is."""
    try:
        return f"{float(str(value)):.7g}"
    except ValueError:
        return value
