"""What `sdcmap look` prints: how the file is written, its columns, who is alone, and what was noticed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from sdcmap.explore.looking import Glance, Look

MOST_SHOWN = 60  # columns of the first table; more are counted


def show(title: str, seen: Look) -> None:
    """Print everything; counts only, but for codes that look like missing values."""
    from rich.console import Console

    console = Console(markup=False, emoji=False, highlight=False)  # a name is a name, :b: and [red] too
    if seen.source is not None and seen.source.dialect.words:
        console.print(f"{title} is read with {seen.source.dialect.words}.")
    if len(seen.variables) == 1:
        console.print(
            "It reads as one column: is that right? Else state the separator, such as --sep ';'.", markup=False
        )
    console.print(_columns(title, seen))
    console.print(_alone(seen))
    console.print(_telling(seen))
    for line in _noticed(seen):
        console.print(f"- {line}")


def _columns(title: str, seen: Look) -> Table:
    from rich.table import Table

    table = Table(title=f"{title}: {seen.rows:,} rows")
    for word in ("variable", "kind", "role", "distinct", "missing", "alone", "told by"):
        table.add_column(word, overflow="fold")  # a name is shown whole
    for g in seen.variables[:MOST_SHOWN]:
        role = g.role if g.stated else f"{g.role}?"
        table.add_row(g.name, g.kind, role, f"{g.distinct:,}", f"{g.missing:,}", f"{g.once:,}", _why(g))
    if len(seen.variables) > MOST_SHOWN:
        table.caption = f"and {len(seen.variables) - MOST_SHOWN:,} more columns; --json lists them all"
    return table


def _why(glance: Glance) -> str:
    formula = f"= {glance.formula}" if glance.formula else ""
    harbor = f"Safe Harbor {glance.safe_harbor}" if glance.safe_harbor else ""
    return "; ".join(part for part in (glance.why, formula, harbor) if part)


def _alone(seen: Look) -> Table:
    from rich.table import Table

    table = Table("a snooper who knows", "columns", "records alone", "share", title="Who is alone")
    for words, (columns, alone) in seen.alone.items():
        table.add_row(words, f"{columns:,}", f"{alone:,}", f"{alone / seen.rows:.1%}")
    return table


def _telling(seen: Look) -> Table:
    from rich.table import Table

    table = Table("columns", "records alone", "share", title="Which columns tell most", caption=seen.telling.words)
    for names, alone in seen.telling.sets:
        table.add_row(", ".join(names), f"{alone:,}", f"{alone / seen.rows:.1%}")
    return table


def _noticed(seen: Look) -> list[str]:
    from sdcmap.data.identifiers import SAFE_HARBOR

    small = ", ".join(f"{count:,} in cells of {words}" for words, count in seen.sizes.items())
    lines = [f"The keys make {seen.cells:,} combinations; records {small}." if seen.sizes else "No keys."]
    if seen.codes:
        lines.append(
            f'These look like codes for missing values; state those that are: --missing "{",".join(seen.codes[:20])}"'
        )
    lines += [
        f"{name} holds numbers and {count:,} values that are none: state its codes for missing values, or leave it as text."
        for name, count in list(seen.mixed.items())[:20]
    ]
    classes = sorted({glance.safe_harbor for glance in seen.variables} - {""})
    if classes:
        lines.append(
            "Safe Harbor classes: " + "; ".join(f"{letter}, {SAFE_HARBOR[letter]}" for letter in classes) + "."
        )
    lines.append("A role with ? is proposed: state it. `alone` counts records whose value no other record has.")
    return lines
