"""Write tables as an Excel workbook, a sheet each, without further libraries (Office Open XML, ECMA-376)."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Mapping
from xml.sax.saxutils import escape, quoteattr

import polars as pl

NAMESPACE = "http://schemas.openxmlformats.org"
MAIN = f"{NAMESPACE}/spreadsheetml/2006/main"
RELATIONS = f"{NAMESPACE}/officeDocument/2006/relationships"
PACKAGE = f"{NAMESPACE}/package/2006"
CONTENT = "application/vnd.openxmlformats-officedocument.spreadsheetml"
HEADER = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
MAX_SHEET_NAME = 31  # characters, in Excel
FIXED_TIME = (1980, 1, 1, 0, 0, 0)  # the same tables give the same bytes


def workbook(sheets: Mapping[str, pl.DataFrame]) -> bytes:
    """Return a workbook with a sheet for each table: a row of column names, then the values."""
    names = [name[:MAX_SHEET_NAME] for name in sheets]
    numbers = range(1, len(names) + 1)
    listed = "".join(
        f'<sheet name={quoteattr(name)} sheetId="{n}" r:id="rId{n}"/>' for n, name in zip(numbers, names, strict=True)
    )
    sheet_type = f"{RELATIONS}/worksheet"
    related = "".join(
        f'<Relationship Id="rId{n}" Type="{sheet_type}" Target="worksheets/sheet{n}.xml"/>' for n in numbers
    )
    overrides = "".join(
        f'<Override PartName="/xl/worksheets/sheet{n}.xml" ContentType="{CONTENT}.worksheet+xml"/>' for n in numbers
    )
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{CONTENT}.sheet.main+xml"/>{overrides}</Types>',
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="rId1" '
        f'Type="{RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{RELATIONS}"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">{related}</Relationships>',
    }
    parts |= {f"xl/worksheets/sheet{n}.xml": _sheet(frame) for n, frame in zip(numbers, sheets.values(), strict=True)}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(zipfile.ZipInfo(name, FIXED_TIME), HEADER + text)
    return buffer.getvalue()


def _sheet(frame: pl.DataFrame) -> str:
    rows = [frame.columns, *frame.iter_rows()]
    cells = "".join(f"<row>{''.join(map(_cell, row))}</row>" for row in rows)
    return f'<worksheet xmlns="{MAIN}"><sheetData>{cells}</sheetData></worksheet>'


def _cell(value: object) -> str:
    """Return one cell: a number, an empty cell for a missing value, else a text."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "<c/>"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"<c><v>{value!r}</v></c>"
    return f'<c t="inlineStr"><is><t xml:space="preserve">{escape(str(value))}</t></is></c>'
