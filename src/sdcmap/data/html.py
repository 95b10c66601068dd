"""Small pieces of HTML for notebooks: every text is escaped, and nothing is loaded."""

from __future__ import annotations

import html
from collections.abc import Sequence

MOST_ROWS = 40  # of a table in a notebook
WIDE = 6  # columns


def table(header: Sequence[str], rows: Sequence[Sequence[object]], more: str = "rows") -> str:
    """A table of the first rows, and how many more there are.

    >>> table(["a"], [["<b>"]])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """
    wide = ' style="min-width: 18em"' if len(header) > WIDE else ""  # else many columns leave the first no room
    head = "".join(f"<th{'' if place else wide}>{html.escape(name)}</th>" for place, name in enumerate(header))
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows[:MOST_ROWS])
    left = len(rows) - MOST_ROWS
    after = paragraph(f"and {left:,} more {more}") if left > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{after}"


def _cell(value: object) -> str:
    shown = "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
    return f"<td>{html.escape(shown)}</td>"


def paragraph(text: str) -> str:
    """A paragraph of plain text."""
    return f"<p>{html.escape(text)}</p>"
