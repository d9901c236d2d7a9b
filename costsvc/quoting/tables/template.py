"""A workbook that pulls quotes: formulas for Excel and LibreOffice, texts for Power Query and Sheets."""

import io
from typing import Final

from xlsxwriter.workbook import Workbook
from xlsxwriter.worksheet import Worksheet

from costsvc.quoting.tables.as_xlsx import new_workbook, widths

_FUTURE: Final = ("NUMBERVALUE", "WEBSERVICE", "ENCODEURL")
_FIRST_ROW: Final = 5
_EXAMPLES: Final = (
    ("llama-3-70b", "h100", 8192),
    ("llama-3-70b", "h200", 8192),
    ("llama-3-8b", "l40s", 4096),
)
_FIELDS: Final = ("input", "cached_input", "output", "output_low", "output_high")

_HINT: Final = (
    'Allow updating of links to see prices. Excel 365 also has LLM.PRICE(model, gpu, ctx, "output").'
)

POWER_QUERY: Final = """let
    Base = "{base}",
    Source = Csv.Document(
        Web.Contents(Base, [RelativePath = "quote.csv",
            Query = [model = "llama-3-70b,llama-3-8b", gpu = "h100,h200", ctx = "8192"]]),
        [Delimiter = ",", Encoding = 65001]),
    Promoted = Table.PromoteHeaders(Source),
    Typed = Table.TransformColumnTypes(Promoted, {{
        {{"as_of", type date}}, {{"ctx_tokens", Int64.Type}}, {{"input_usd_per_mtok", type number}},
        {{"cached_input_usd_per_mtok", type number}}, {{"output_usd_per_mtok", type number}},
        {{"request_usd", type number}}}}, "en-US")
in
    Typed
"""
APPS_SCRIPT: Final = """/**
 * Prices of rows of model, gpu, ctx: input, cached input, output [USD per 1,000,000 tokens], or why not.
 * @customfunction
 */
function LLM_PRICES(rows) {{
  const asked = rows.map(([model, gpu, ctx]) => ({{ model, gpu, ctx }}));
  const answer = UrlFetchApp.fetch("{base}/quotes/batch", {{
    method: "post", contentType: "application/json", payload: JSON.stringify({{ rows: asked }}) }});
  return JSON.parse(answer.getContentText()).items.map((row) => row.error ? [row.error, "", ""]
    : ["input", "cached_input", "output"].map((name) => Number(row[name + "_usd_per_mtok"])));
}}
"""
IMPORT: Final = '=IMPORTDATA("{base}/quote.csv?model=llama-3-70b,llama-3-8b&gpu=h100&ctx=8192&onerror=text")'


def value_formula(field: str, row: int) -> str:
    """A number of the service for model, gpu and ctx in columns A to C, the same in every locale."""
    return f'NUMBERVALUE(WEBSERVICE({_address(row)}&"&field={field}"),".",",")'


def reason_formula(row: int) -> str:
    """Why there is no number, as text in the cell; blank where there is one."""
    asked = f'WEBSERVICE({_address(row)}&"&field=output&onerror=text")'
    return f'IF(LEFT({asked},6)="#ERROR",{asked},"")'


LAMBDA: Final = (
    "_xlfn.LAMBDA(_xlpm.model,_xlpm.gpu,_xlpm.ctx,_xlpm.field,_xlfn.NUMBERVALUE(_xlfn.WEBSERVICE(service&"
    '"/quote.txt?model="&_xlfn.ENCODEURL(_xlpm.model)&"&gpu="&_xlfn.ENCODEURL(_xlpm.gpu)&"&ctx="&_xlpm.ctx&'
    '"&field="&_xlpm.field),".",","))'
)


def template_workbook(base: str) -> bytes:
    """The workbook. `base` is where the service answers, in the cell named `service`."""
    buffer = io.BytesIO()
    book = new_workbook(buffer)
    _prices(book, base)
    for name, text in (
        ("Power Query", POWER_QUERY.format(base=base)),
        ("Google Sheets", IMPORT.format(base=base)),
        ("Apps Script", APPS_SCRIPT.format(base=base)),
    ):
        sheet = book.add_worksheet(name)
        sheet.set_column(0, 0, 130)
        _on_one_page(sheet)
        for row, line in enumerate(text.splitlines()):
            sheet.write_string(row, 0, line)
    book.define_name("LLM.PRICE", f"={LAMBDA}")
    book.close()
    return buffer.getvalue()


def excel(formula: str) -> str:
    """A formula as a workbook holds it: newer functions by their long names."""
    for name in _FUTURE:
        formula = formula.replace(f"{name}(", f"_xlfn.{name}(")
    return f"={formula}"


def _prices(book: Workbook, base: str) -> None:
    sheet = book.add_worksheet("Prices")
    bold = book.add_format({"bold": True, "bottom": 1})
    right = book.add_format({"bold": True, "bottom": 1, "align": "right"})
    given = book.add_format({"bg_color": "#FFF2CC", "border": 1})
    price = book.add_format({"num_format": "0.000000"})
    widths(sheet, (22, 30, 12, *[16] * len(_FIELDS), 60))
    _on_one_page(sheet)
    sheet.write_string(0, 0, "Prices in US dollars per 1,000,000 tokens, asked from the service in B2", bold)
    sheet.write_string(1, 0, "service")
    sheet.write_string(1, 1, base, given)
    book.define_name("service", "=Prices!$B$2")
    sheet.write_string(
        2,
        0,
        'Excel 365 also has LLM.PRICE(model, gpu, ctx, "output"). Allow updating of links to see prices.',
    )
    for column, name in enumerate(("model", "gpu", "ctx", *_FIELDS, "why there is no price")):
        is_number = name in ("ctx", *_FIELDS)
        sheet.write_string(_FIRST_ROW - 2, column, name, right if is_number else bold)
    for row, (model, gpu, context) in enumerate(_EXAMPLES, start=_FIRST_ROW):
        sheet.write_string(row - 1, 0, model, given)
        sheet.write_string(row - 1, 1, gpu, given)
        sheet.write_number(row - 1, 2, context, given)
        for column, field in enumerate(_FIELDS, start=3):
            sheet.write_formula(row - 1, column, excel(value_formula(field, row)), price, "")
        sheet.write_formula(row - 1, 3 + len(_FIELDS), excel(reason_formula(row)), None, "")


def _on_one_page(sheet: Worksheet) -> None:
    sheet.set_landscape()
    sheet.fit_to_pages(1, 0)


def _address(row: int) -> str:
    return f'service&"/quote.txt?model="&ENCODEURL(A{row})&"&gpu="&ENCODEURL(B{row})&"&ctx="&C{row}'
