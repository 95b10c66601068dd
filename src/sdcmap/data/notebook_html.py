"""Small pieces of HTML for notebooks. Every text is escaped, and nothing is loaded from elsewhere."""

from __future__ import annotations

import html
from collections.abc import Sequence

MAX_ROWS = 40  # of a table in a notebook
WIDE_TABLE_COLUMNS = 6  # from here on the first column gets a minimum width


def table(header: Sequence[str], rows: Sequence[Sequence[object]], more: str = "rows") -> str:
    """Return a table of the first rows, and a line with the number of further rows.

    >>> table(["a"], [["<b>"]])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """
    wide = ' style="min-width: 18em"' if len(header) > WIDE_TABLE_COLUMNS else ""  # many columns squeeze it
    head = "".join(f"<th{'' if index else wide}>{html.escape(name)}</th>" for index, name in enumerate(header))
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows[:MAX_ROWS])
    left = len(rows) - MAX_ROWS
    after = paragraph(f"and {left:,} more {more}") if left > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{after}"


def _cell(value: object) -> str:
    shown = "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
    return f"<td>{html.escape(shown)}</td>"


def paragraph(text: str) -> str:
    """Return a paragraph of plain text."""
    return f"<p>{html.escape(text)}</p>"
