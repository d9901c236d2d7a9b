"""The same answer in every format, so that no spreadsheet of any locale misreads it."""

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import openpyxl
import pytest
from litestar.testing import TestClient

from costsvc.app import create_app
from costsvc.quoting.flat import COLUMNS
from costsvc.quoting.grid import MAX_QUOTES
from costsvc.quoting.tables.cells import written
from tests.api.conftest import TODAY, Client, settings_for

ASKED = "model=llama-3-70b&gpu=h100&ctx=8192"
LISTS = ("/models", "/gpus", "/prices", "/api-prices")
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


@pytest.fixture(scope="module")
def quick(small: Path) -> Iterator[Client]:
    """A service over a small catalog."""
    app = create_app(settings_for(small), today=lambda: TODAY)
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def cells(content: bytes) -> list[list[object]]:
    sheet = openpyxl.load_workbook(io.BytesIO(content)).worksheets[0]
    return [[cell.value for cell in row] for row in sheet.iter_rows()]


@pytest.mark.parametrize(
    ("field", "path"),
    [
        ("output", ("prices", "output", "usd_per_mtok")),
        ("input_low", ("prices", "input", "low")),
        ("request", ("cost", "request_usd")),
        ("cached_input_usd_per_mtok", ("prices", "cached_input", "usd_per_mtok")),
        ("latency.ttft_ms", ("latency", "ttft_ms")),
        ("memory.weights_bytes", ("memory", "weights_bytes")),
    ],
)
def test_text_is_the_number_of_the_json_and_nothing_else(
    quick: Client, field: str, path: tuple[str, ...]
) -> None:
    expected = quick.get(f"/quote?{ASKED}").json()
    for name in path:
        expected = expected[name]
    response = quick.get(f"/quote.txt?{ASKED}&field={field}")
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert re.fullmatch(rb"\d+(\.\d+)?", response.content)
    assert float(response.text) == pytest.approx(float(expected), rel=1e-9)


def test_a_word_of_the_quote_is_text_too(quick: Client) -> None:
    assert quick.get(f"/quote.txt?{ASKED}&field=bound").text == "tpot"


@pytest.mark.parametrize(
    ("field", "said"),
    [("", "field=output"), ("&field=outptu", "Nearest: output"), ("&field=prices", "not one value")],
)
def test_text_without_a_known_field_names_the_fields(quick: Client, field: str, said: str) -> None:
    response = quick.get(f"/quote.txt?{ASKED}{field}")
    assert response.status_code == 400
    assert said in response.json()["detail"]


def test_csv_has_the_promised_columns_and_the_numbers_of_the_json(quick: Client) -> None:
    answer = quick.get(f"/quote?{ASKED}").json()
    response = quick.get(f"/quote.csv?{ASKED}")
    assert response.text.splitlines()[0].split(",") == list(COLUMNS)
    assert not response.content.startswith(b"\xef\xbb\xbf")
    (row,) = rows(response.text)
    assert (row["as_of"], row["catalog_revision"]) == (TODAY.isoformat(), "1")
    assert row["output_usd_per_mtok"] == answer["prices"]["output"]["usd_per_mtok"]
    assert row["input_high_usd_per_mtok"] == answer["prices"]["input"]["high"]
    assert float(row["ttft_ms"]) == answer["latency"]["ttft_ms"]
    assert row["error"] == ""


def test_xml_answers_the_path_that_a_sheet_asks_for(quick: Client) -> None:
    root = ElementTree.fromstring(quick.get(f"/quote.xml?{ASKED}").content)  # noqa: S314 - our own answer
    (row,) = rows(quick.get(f"/quote.csv?{ASKED}").text)
    assert root.tag == "quote"
    assert root.findtext("output") == row["output_usd_per_mtok"]
    assert root.findtext("output_usd_per_mtok") == row["output_usd_per_mtok"]


def test_no_number_in_any_format_has_three_decimals_or_an_exponent(client: Client) -> None:
    texts = [client.get(f"{path}.csv").text for path in LISTS]
    texts.append(
        client.get("/quote.csv?model=llama-3-8b,llama-3-70b&gpu=h100,h200&ctx=1000,8192&margin=0.125").text
    )
    for text in texts:
        for line in csv.reader(io.StringIO(text)):
            assert not [cell for cell in line if re.fullmatch(r"-?\d+\.\d{3}|-?[\d.]+[eE][+-]?\d+", cell)]


@pytest.mark.parametrize("path", LISTS)
def test_a_list_is_a_table_with_its_day_and_revision_in_every_row(client: Client, path: str) -> None:
    items = client.get(path).json()["items"]
    table = rows(client.get(f"{path}.csv").text)
    assert [row["id"] for row in table] == [item["id"] for item in items]
    assert {(row["as_of"], row["catalog_revision"]) for row in table} == {(TODAY.isoformat(), "1")}
    root = ElementTree.fromstring(client.get(f"{path}.xml").content)  # noqa: S314 - our own answer
    assert [row.findtext("id") for row in root] == [item["id"] for item in items]


def test_a_workbook_of_a_list_holds_typed_numbers_and_days(client: Client) -> None:
    response = client.get("/prices.xlsx?gpu=h100")
    assert response.headers["content-type"] == XLSX
    head, first, *_ = cells(response.content)
    row = dict(zip(map(str, head), first, strict=True))
    assert isinstance(row["usd_per_gpu_hour"], float)
    assert f"{row['as_of']:%Y-%m-%d}" == TODAY.isoformat()


@pytest.mark.parametrize("path", [*(f"{path}.xlsx" for path in LISTS), f"/quote.csv?{ASKED}"])
def test_equal_answers_are_equal_bytes(client: Client, path: str) -> None:
    assert client.get(path).content == client.get(path).content


def test_a_grid_has_a_row_per_combination_in_order_and_bad_ones_say_why(client: Client) -> None:
    table = rows(client.get("/quote.csv?model=llama-3-8b,no-such-model&gpu=h100,l4&ctx=4096,8192").text)
    asked = [(row["model"], row["gpu"], row["ctx_tokens"]) for row in table]
    good = [("llama-3-8b", gpu, ctx) for gpu in ("h100-sxm", "l4") for ctx in ("4096", "8192")]
    assert asked[:4] == good
    assert all(row["error"] == "" and float(row["output_usd_per_mtok"]) > 0 for row in table[:4])
    assert len(table) == 8
    for row in table[4:]:
        assert "No model 'no-such-model'" in row["error"]
        assert (row["output_usd_per_mtok"], row["as_of"]) == ("", TODAY.isoformat())


def test_a_row_of_a_grid_is_the_quote_asked_alone(client: Client) -> None:
    _, second = rows(client.get("/quote.csv?model=llama-3.1-70b&gpu=h100&ctx=8192,16384").text)
    (alone,) = rows(client.get("/quote.csv?model=llama-3.1-70b&gpu=h100&ctx=16384").text)
    assert second == alone


def test_a_grid_beyond_the_cap_says_the_cap(quick: Client) -> None:
    contexts = ",".join(str(1000 + n) for n in range(MAX_QUOTES + 1))
    response = quick.get(f"/quote.csv?model=llama-3-70b&gpu=h100&ctx={contexts}")
    assert response.status_code == 400
    assert f"answers {MAX_QUOTES} at most" in response.json()["detail"]
    assert "/quotes/batch" in response.json()["detail"]


@pytest.mark.parametrize(
    ("url", "accept", "content_type"),
    [
        (f"/quote.csv?{ASKED}&format=xml", "application/json", "text/csv; charset=utf-8"),
        (f"/quote?{ASKED}&format=xml", "text/csv", "application/xml; charset=utf-8"),
        (f"/quote?{ASKED}&format=CSV", "*/*", "text/csv; charset=utf-8"),
        (f"/quote?{ASKED}", "text/csv", "text/csv; charset=utf-8"),
        (f"/quote?{ASKED}", "application/xml;q=0.5, text/csv;q=0.1", "application/xml; charset=utf-8"),
        (f"/quote?{ASKED}", "text/html,application/xml;q=0.9,*/*;q=0.8", "application/json"),
        (f"/quote?{ASKED}&field=output", "text/plain", "text/plain; charset=utf-8"),
    ],
)
def test_the_suffix_comes_before_the_parameter_and_the_parameter_before_accept(
    quick: Client, url: str, accept: str, content_type: str
) -> None:
    response = quick.get(url, headers={"Accept": accept})
    assert (response.status_code, response.headers["content-type"]) == (200, content_type)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (f"/quote?{ASKED}&format=ods", "choose one of json, csv, txt, xml, xlsx"),
        ("/models?format=pdf", "choose one of json, csv, txt, xml, xlsx"),
        (f"/quote.csv?{ASKED}&field=output", "leave it away"),
        ("/quote.csv?model=llama-3-70b&gpu=h100&ctx=1,,2", "empty place"),
    ],
)
def test_a_format_that_is_not_there_names_those_that_are(quick: Client, url: str, said: str) -> None:
    response = quick.get(url)
    assert response.status_code == 400
    assert said in response.json()["detail"]


FORMATS = (
    f"/quote.csv?{ASKED}",
    f"/quote.xml?{ASKED}",
    f"/quote.txt?{ASKED}&field=output",
    f"/quote.xlsx?{ASKED}",
    "/models.csv",
    "/gpus.xlsx",
)


@pytest.mark.parametrize("url", FORMATS)
def test_every_format_answers_head_and_304_and_lets_any_page_read(quick: Client, url: str) -> None:
    got, head = quick.get(url), quick.head(url)
    assert head.status_code == 200
    assert head.content == b""
    assert head.headers["content-length"] == str(len(got.content))
    assert got.headers["access-control-allow-origin"] == "*"
    again = quick.get(url, headers={"If-None-Match": got.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_two_formats_and_two_fields_have_different_tags(quick: Client) -> None:
    urls = [f"/quote?{ASKED}", *FORMATS[:4], f"/quote.txt?{ASKED}&field=input"]
    assert len({quick.get(url).headers["etag"] for url in urls}) == len(urls)


@pytest.mark.parametrize(
    ("url", "content_type"),
    [
        ("/quote.txt?model=llama-3-71b&gpu=h100&ctx=8192&field=output", "text/plain; charset=utf-8"),
        ("/quote.csv?model=llama-3-71b&gpu=h100&ctx=8192", "text/csv; charset=utf-8"),
        ("/quote.xml?model=llama-3-71b&gpu=h100&ctx=8192", "application/xml; charset=utf-8"),
        ("/quote?model=llama-3-71b&gpu=h100&ctx=8192", "text/plain; charset=utf-8"),
        ("/models/llama-3-71b", "text/plain; charset=utf-8"),
    ],
)
def test_an_error_as_text_can_be_read_in_a_cell(quick: Client, url: str, content_type: str) -> None:
    response = quick.get(f"{url}{'&' if '?' in url else '?'}onerror=text")
    assert (response.status_code, response.headers["content-type"]) == (200, content_type)
    assert "#ERROR No model 'llama-3-71b' in the catalog." in response.text
    assert response.headers["cache-control"] == "no-store"


def test_an_error_as_text_fits_one_cell_of_a_table(quick: Client) -> None:
    text = quick.get("/quote.csv?model=llama-3-70b&gpu=h100&ctx=8192&gpus=1&onerror=text").text
    ((cell,),) = csv.reader(io.StringIO(text))
    assert cell.startswith("#ERROR ")
    assert "," in cell
    ((said,),) = cells(quick.get("/quote.xlsx?model=x&gpu=h100&ctx=8192&onerror=text").content)
    assert str(said).startswith("#ERROR No model")


def test_the_workbook_of_one_quote_computes_its_prices(quick: Client) -> None:
    content = quick.get(f"/quote.xlsx?{ASKED}").content
    book = openpyxl.load_workbook(io.BytesIO(content))
    assert book.sheetnames[:5] == ["Quote", "Inputs", "Terms", "Attribution", "Points"]
    assert str(book["Quote"]["B5"].value).startswith("=raw_input*")
    shown = openpyxl.load_workbook(io.BytesIO(content), data_only=True)["Quote"]
    answer = quick.get(f"/quote?{ASKED}").json()
    assert shown["B5"].value == pytest.approx(float(answer["prices"]["input"]["usd_per_mtok"]), rel=1e-8)
    assert {shown.cell(row, 6).value for row in range(5, 30)} <= {True, None}


@pytest.mark.parametrize("more", ["&attribution=step", "&kv_cache=off&slo=batch", "&speculation=ngram"])
def test_a_quote_without_a_marginal_attribution_is_a_row_in_its_workbook(quick: Client, more: str) -> None:
    head, row = cells(quick.get(f"/quote.xlsx?model=llama-3-70b&gpu=h100&ctx=512{more}").content)
    assert dict(zip(map(str, head), row, strict=True))["model"] == "llama-3-70b"


HOSTILE = ("=1+1", "+1+1", "-1+1", "@SUM(1)", "\t=1", "\N{FULLWIDTH EQUALS SIGN}1")


@pytest.mark.parametrize("text", HOSTILE)
def test_text_that_would_run_as_a_formula_is_disarmed(quick: Client, text: str) -> None:
    asked = {"model": text, "gpu": "h100,h200", "ctx": "8192", "as_of": text}
    table = rows(quick.get("/quote.csv", params=asked).text)
    assert {row["model"] for row in table} == {f"'{text.strip()}"}
    assert {row["as_of"] for row in table} == {TODAY.isoformat()}
    book = openpyxl.load_workbook(io.BytesIO(quick.get("/quote.xlsx", params=asked).content))
    column = COLUMNS.index("model") + 1
    held = book.worksheets[0].cell(2, column)
    assert held.data_type == "s"


def test_a_negative_number_is_left_a_number() -> None:
    assert written(-0.5, "number") == "-0.5"
    assert written("-0.5", "number") == "-0.5"


def test_a_curve_is_a_table_with_the_cliffs_that_are_passed(quick: Client) -> None:
    asked = "model=llama-3-70b&gpu=h100&ctx=4096&points=3"
    answer = quick.get(f"/curve?{asked}").json()
    table = rows(quick.get(f"/curve.csv?{asked}").text)
    assert [(row["ctx"], row["request_usd"]) for row in table] == [
        (str(item["ctx"]), item["request_usd"]) for item in answer["items"]
    ]
    inside = [cliff for cliff in answer["cliffs"] if cliff["ctx"] <= answer["items"][-1]["ctx"]]
    said = "; ".join(row["cliffs"] for row in table)
    assert inside
    assert all(f"{cliff['kind']} at {cliff['ctx']}" in said for cliff in inside)
    head, *lines = cells(quick.get(f"/curve.xlsx?{asked}").content)
    assert [line[head.index("ctx")] for line in lines] == [item["ctx"] for item in answer["items"]]


def test_a_frontier_is_a_table_of_its_points(quick: Client) -> None:
    asked = "model=llama-3-70b&gpu=h100&ctx=4096&concurrencies=3"
    answer = quick.get(f"/frontier?{asked}").json()
    table = rows(quick.get(f"/frontier.csv?{asked}").text)
    prices = [point["blended_usd_per_mtok"] for point in answer["front"]]
    assert [row["blended_usd_per_mtok"] for row in table] == prices
    assert len(cells(quick.get(f"/frontier.xlsx?{asked}").content)) == len(prices) + 1


def test_a_comparison_is_a_table_of_what_the_json_ranks(quick: Client) -> None:
    asked = "model=llama-3-70b&gpu=h100&ctx=8192&weights=bf16,fp8,mxfp4"
    answer = quick.get(f"/compare?{asked}").json()
    table = rows(quick.get(f"/compare.csv?{asked}").text)
    ranked = [row for row in table if not row["error"]]
    assert [row["request_usd"] for row in ranked] == [item["request_usd"] for item in answer["items"]]
    assert [row["error"] for row in table[len(ranked) :]] == [one["why"] for one in answer["refused"]]
    assert len(table) == answer["compared"] == 3
    head, *lines = cells(quick.get(f"/compare.xlsx?{asked}").content)
    column = head.index("blended_usd_per_mtok")
    assert [line[column] for line in lines[: len(ranked)]] == [
        float(item["blended_usd_per_mtok"]) for item in answer["items"]
    ]


def test_text_of_a_list_is_a_column_a_line_per_row(client: Client) -> None:
    (price,) = (item["reference_usd_per_gpu_hour"] for item in client.get("/gpus?q=h100-sxm").json()["items"])
    alone = client.get("/gpus.txt?q=h100-sxm&field=reference_usd_per_gpu_hour")
    assert re.fullmatch(r"\d+\.\d+", alone.text)
    assert float(alone.text) == float(price)
    ids = [item["id"] for item in client.get("/models").json()["items"]]
    assert client.get("/models.txt?field=id").text.split("\n") == ids
    compared = "model=llama-3-8b&gpu=h100,l4&ctx=4096"
    table = rows(client.get(f"/compare.csv?{compared}").text)
    texts = client.get(f"/compare.txt?{compared}&field=blended_usd_per_mtok").text.split("\n")
    assert texts == [row["blended_usd_per_mtok"] for row in table]


@pytest.mark.parametrize(
    ("query", "said"), [("", "Columns are as_of"), ("field=usd_per_gpu_huor", "Nearest: usd_per_gpu_hour")]
)
def test_text_of_a_list_without_a_known_column_names_them(client: Client, query: str, said: str) -> None:
    response = client.get(f"/prices.txt?{query}")
    assert response.status_code == 400
    assert said in response.json()["detail"]


def test_a_row_says_its_rates_and_where_its_price_comes_from(quick: Client) -> None:
    answer = quick.get(f"/quote?{ASKED}").json()
    (row,) = rows(quick.get(f"/quote.csv?{ASKED}").text)
    assert float(row["input_tok_s"]) == answer["throughput"]["input_tok_s"]
    assert row["gpu_price_basis"] == answer["cost"]["gpu_price"]["basis"]
    assert row["mode"] == "colocated"
