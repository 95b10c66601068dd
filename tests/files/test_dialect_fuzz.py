"""Random files in every dialect are read as they were written, with a stated or detected dialect."""

from __future__ import annotations

import csv
import io
import random
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import sdcmap as sm
from sizes import size

CASES = size(25, 5000)
WORDS = ["a", "M\u00fcller", "no", "x y", "it's", 'say "hi"', "semi;colon", "com,ma", "bar|bar", "tab\tbed",
         "new\nline", "\u20acuro", "007", "+49", "-", "e5", "nan", "inf", "NULL", "1.2.3"]  # fmt: skip
DATES = ["%d.%m.%Y", "%Y-%m-%d", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d"]


def amount(value: float, decimal: str, thousands: str) -> str:
    """Return a number with two decimals in a dialect."""
    plain = f"{value:_.2f}".replace(".", "d").replace("_", "" if thousands == "none" else thousands)
    return plain.replace("d", decimal)


def case(dice: random.Random) -> tuple[dict[str, list[Any]], dict[str, list[str]], dict[str, str]]:
    """Draw a table, its texts, and a dialect."""
    decimal = dice.choice(".,")
    thousands = dice.choice([mark for mark in ("none", "none", ".", ",", "'", " ") if mark != decimal])
    encoding = dice.choice(["utf-8", "utf-8", "latin-1", "cp1252", "utf-16"])
    rows, order = range(dice.randint(30, 60)), dice.choice(DATES)
    words = [w for w in WORDS if w.encode(encoding, "ignore").decode(encoding) == w]
    table: dict[str, list[Any]] = {
        "amount": [round(dice.uniform(-1e5, 1e6), 2) for _ in rows],
        "day": [date(2001, 12, 25), *(date(1990, 1, 1) + timedelta(dice.randint(0, 9999)) for _ in rows[1:])],
        "word": ["yes", *(dice.choice(words) for _ in rows[1:])],
        "count": [dice.randint(-9, 999) for _ in rows],
    }
    ways = {"amount": lambda x: amount(x, decimal, thousands), "day": lambda x: x.strftime(order)}
    for values in table.values():
        values[:] = [None if row and dice.random() < 0.05 else value for row, value in enumerate(values)]
    texts = {n: ["" if v is None else ways.get(n, str)(v) for v in values] for n, values in table.items()}  # type: ignore[operator]
    dialect = {
        "sep": dice.choice(",;\t|"),
        "decimal": decimal,
        "thousands": thousands,
        "encoding": encoding,
        "quote": '"',
    }
    return table, texts, dialect


def test_every_dialect_round_trips(tmp_path: Path) -> None:
    for number in range(CASES):
        dice = random.Random(number)
        table, texts, dialect = case(dice)
        text = io.StringIO(newline="")
        ends, quoting = dice.choice(["\n", "\r\n"]), dice.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
        lines = csv.writer(text, delimiter=dialect["sep"], lineterminator=ends, quoting=quoting)
        lines.writerows([list(table), *zip(*texts.values(), strict=True)])
        path = tmp_path / "file.csv"
        path.write_bytes(text.getvalue().encode(dialect["encoding"]))
        for how, given in (("stated", dialect), ("sensed", {})):
            frame = sm.read(path, **given).frame()  # type: ignore[arg-type]
            read = {name: [value if value != "" else None for value in frame[name].to_list()] for name in frame.columns}
            assert read == table, f"case {number}, {how}"
