"""Drives a running LibreOffice: reads actions as JSON from standard input, answers as JSON.

Run by the Python that LibreOffice's bridge is installed for, which is the system's, so nothing of this
project is imported. The one argument is the port.
"""

import json
import os
import sys
import time
from typing import Any

import uno  # type: ignore[import-not-found]
from com.sun.star.beans import PropertyValue  # type: ignore[import-not-found]
from com.sun.star.connection import NoConnectException  # type: ignore[import-not-found]

PATIENCE_S = 60
# com.sun.star.sheet.FormulaResult.ERROR
FORMULA_ERROR = 4
LAST_COLUMN = 20
# Of a printed page. [1/100 mm]
LONG_SIDE, SHORT_SIDE = 29_700, 21_000


def hidden() -> Any:
    value = PropertyValue()
    value.Name, value.Value = "Hidden", True
    return value


def desktop(port: str) -> Any:
    here = uno.getComponentContext()
    resolver = here.ServiceManager.createInstanceWithContext("com.sun.star.bridge.UnoUrlResolver", here)
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            there = resolver.resolve(f"uno:socket,host=127.0.0.1,port={port};urp;StarOffice.ComponentContext")
            return there.ServiceManager.createInstanceWithContext("com.sun.star.frame.Desktop", there)
        except NoConnectException:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def cell_of(sheet: Any, row: int, column: int) -> dict[str, Any]:
    cell = sheet.getCellByPosition(column, row)
    return {
        "text": cell.String,
        "value": cell.Value,
        "type": cell.Type.value,
        "formula": cell.Formula,
        "error": cell.getError(),
    }


def table_of(document: Any, name: str, columns: int) -> list[list[dict[str, Any]]]:
    """The filled rows of a sheet, or of the first where the name is blank: whole, since each call is a round trip.

    A number's text is not asked for: it is blank.
    """
    sheet = document.Sheets.getByName(name) if name else document.Sheets.getByIndex(0)
    used = sheet.createCursor()
    used.gotoEndOfUsedArea(False)
    area = sheet.getCellRangeByPosition(0, 0, columns - 1, max(used.RangeAddress.EndRow, 3))
    wrong = {
        (row, column)
        for place in area.queryFormulaCells(FORMULA_ERROR).RangeAddresses
        for row in range(place.StartRow, place.EndRow + 1)
        for column in range(place.StartColumn, place.EndColumn + 1)
    }
    rows: list[list[dict[str, Any]]] = []
    for values, formulas in zip(area.DataArray, area.FormulaArray, strict=True):
        if values[0] == "" and len(rows) >= 4:
            break
        rows.append(
            [
                {
                    "text": value if isinstance(value, str) else "",
                    "value": value if isinstance(value, float) else 0.0,
                    "formula": formula,
                    "error": (len(rows), column) in wrong,
                }
                for column, (value, formula) in enumerate(zip(values, formulas, strict=True))
            ]
        )
    return rows


def set_input(document: Any, name: str, value: float) -> None:
    cell = document.NamedRanges.getByName(name).getReferredCells().getCellByPosition(0, 0)
    cell.Value = value


def print_asking(office: Any, document: Any, name: str, path: str) -> None:
    """Print a sheet whose formulas ask a service: only in a new document, and typed anew, may they."""
    new = office.loadComponentFromURL("private:factory/scalc", "_blank", 0, (hidden(),))
    try:
        new.Sheets.importSheet(document, name, 0)
        sheet = new.Sheets.getByIndex(0)
        for row, line in enumerate(table_of(new, name, LAST_COLUMN)):
            for column, cell in enumerate(line):
                if cell["formula"].startswith("="):
                    place = sheet.getCellByPosition(column, row)
                    place.Formula = ""
                    place.Formula = cell["formula"]
        new.Sheets.removeByName(new.Sheets.getByIndex(1).Name)
        page = new.StyleFamilies.getByName("PageStyles").getByName(sheet.PageStyle)
        page.IsLandscape, page.HeaderIsOn, page.FooterIsOn = True, False, False
        page.Width, page.Height, page.ScaleToPagesX = LONG_SIDE, SHORT_SIDE, 1
        printing = PropertyValue()
        printing.Name, printing.Value = "FilterName", "calc_pdf_Export"
        new.storeToURL(f"file://{path}", (printing,))
    finally:
        new.close(True)


def act(office: Any, action: dict[str, Any]) -> Any:
    """One document: opened or new, changed, recalculated, read."""
    document = office.loadComponentFromURL(action["open"], "_blank", 0, (hidden(),))
    if document is None:
        return None
    try:
        if "print" in action:
            return print_asking(office, document, action["sheet"], action["print"])
        if "formulas" in action:
            sheet = document.Sheets.getByIndex(0)
            for place, text in action.get("cells", {}).items():
                sheet.getCellRangeByName(place).Formula = text
            for row, formula in enumerate(action["formulas"]):
                sheet.getCellByPosition(0, row).Formula = formula
            return [cell_of(sheet, row, 0) for row in range(len(action["formulas"]))]
        answers = []
        for changes in action.get("changes", [{}]):
            for name, value in changes.items():
                set_input(document, name, value)
            document.calculateAll()
            answers.append(table_of(document, action["sheet"], action["columns"]))
        return answers
    finally:
        document.close(True)


if __name__ == "__main__":
    bridge = desktop(sys.argv[1])
    json.dump([act(bridge, action) for action in json.load(sys.stdin)], sys.stdout)
    sys.stdout.flush()
    # The bridge's threads outlive the interpreter and may crash it while it ends, after all is answered.
    os._exit(0)
