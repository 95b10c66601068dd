"""`sdcmap look`: how a file is written, its columns, who is alone, what was noticed, and a plan to start from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from sdcmap.cli import options
from sdcmap.cli.app import ROLES, app, note, print_json, reads_a_file

if TYPE_CHECKING:
    from rich.table import Table

    from sdcmap.explore.first_look import ColumnSummary, Look

MOST_SHOWN = 60  # columns of the first table; more are counted


def show(title: str, seen: Look) -> None:
    """Print everything; counts only, but for codes that look like missing values."""
    from rich.console import Console

    console = Console(markup=False, emoji=False, highlight=False)  # a name is a name, :b: and [red] too
    if seen.source is not None and seen.source.dialect.words:
        console.print(f"{title} is read with {seen.source.dialect.words}.")
    if len(seen.variables) == 1:
        console.print("It reads as one column: is that right? Else state the separator, such as --sep ';'.")
    for part in (_columns(title, seen), *_who_is_alone(seen), *(f"- {line}" for line in _noticed(seen))):
        console.print(part)


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


def _why(glance: ColumnSummary) -> str:
    formula = f"= {glance.formula}" if glance.formula else ""
    harbor = f"Safe Harbor {glance.safe_harbor}" if glance.safe_harbor else ""
    return "; ".join(part for part in (glance.why, formula, harbor) if part)


def _who_is_alone(seen: Look) -> tuple[Table, Table]:
    """Records alone by what a snooper knows, and by the columns that tell most."""
    from rich.table import Table

    known = Table("a snooper who knows", "columns", "records alone", "share", title="Who is alone")
    for words, (columns, alone) in seen.unique.items():
        known.add_row(words, f"{columns:,}", f"{alone:,}", f"{alone / seen.rows:.1%}")
    telling = Table(
        "columns", "records alone", "share", title="Which columns tell most", caption=seen.identifying.words
    )
    for names, alone in seen.identifying.sets:
        telling.add_row(", ".join(names), f"{alone:,}", f"{alone / seen.rows:.1%}")
    return known, telling


def _noticed(seen: Look) -> Iterator[str]:
    from sdcmap.data.identifiers import SAFE_HARBOR

    small = ", ".join(f"{count:,} in cells of {words}" for words, count in seen.sizes.items())
    yield f"The keys make {seen.cells:,} combinations; records {small}." if seen.sizes else "No keys."
    if codes := ",".join(seen.codes[:MOST_CODES]):
        yield f'These look like codes for missing values; state those that are: --missing "{codes}"'
    todo = "state its codes for missing values, or leave it as text."
    for name, count in list(seen.mixed.items())[:MOST_CODES]:
        yield f"{name} holds numbers and {count:,} values that are none: {todo}"
    if classes := sorted({glance.safe_harbor for glance in seen.variables} - {""}):
        yield f"Safe Harbor classes: {'; '.join(f'{letter}, {SAFE_HARBOR[letter]}' for letter in classes)}."
    yield "A role with ? is proposed: state it. `unique` counts records whose value no other record has."


@app.command()
@reads_a_file(*ROLES, "other", "drop", "replicate", "psu", "wave", "case")
def look(
    file: options.File, given: dict[str, Any],
    census: Annotated[bool, Option("--census", help="Everybody of the population is in the file.")] = False,
    edits: Annotated[bool, Option("--edits", help="Propose edit rules; they show values of the file.")] = False,
    known_by: Annotated[
        list[str], Option(help='Who could know columns: "q1,q2=respondent only: why nobody else could".')] = [],  # noqa: B006
    profile: Annotated[
        str, Option(help="For whom the file is: public-use, scientific-use, teaching or business.")] = "public-use",
    ddi: Annotated[
        Path | None, Option(help="A DDI-Codebook (codebook.xml): labels, universes, codes for missing values.")] = None,
    within: Annotated[
        Path | None, Option(help="The study that released this file, for a public-use file made from it.")] = None,
    tables: Annotated[
        list[Path], Option(help="A table that was published of the same people: columns and `count`; repeat it.")
    ] = [],  # noqa: B006
    out: Annotated[Path | None, Option("-o", "--out", help="Write a plan to start from.")] = None,
    as_json: options.Json = False,
) -> None:  # fmt: skip
    """How the file is written, kinds, proposed roles, who is alone, and a starting plan.

    Example: sdcmap look cps.csv --sensitive Income --profile public-use -o plan.toml

    Example: sdcmap look umfrage.csv --sep ";" --decimal "," --encoding cp1252 --missing "k.A.,lohn=-8"

    Example: sdcmap look survey.csv --ddi codebook.xml -o plan.toml

    Example: sdcmap look survey.csv --tables age-by-region.csv --tables sex-by-region.csv -o plan.toml

    Example: sdcmap look suf/data.csv --ddi suf/codebook.xml --within suf-study --profile public-use -o puf.toml
    """
    import sdcmap as sm
    from sdcmap.data.private_folder import write_atomically
    from sdcmap.explore.edit_proposals import propose_edits
    from sdcmap.explore.first_look import look as look_at
    from sdcmap.study.profiles import to_profile

    every = any(names == "all" for names in given.values())
    paths = {name: str(path.resolve()) for name, path in (("ddi", ddi), ("within", within)) if path is not None}
    named = {name: names for name, names in given.items() if names != "all"}
    source = sm.Source(str(file), **named, **paths, census=census, known_by=tuple(known_by)).with_dialect()  # type: ignore[arg-type]
    held = to_profile(profile)
    seen = look_at(source if not every else sm.read(file, **given, census=census, known_by=known_by, ddi=source.ddi))
    seen = replace(seen, source=source)
    rules = propose_edits(seen.data) if edits and seen.data is not None else []
    if as_json:
        print_json(seen.facts)
    else:
        show(file.name, seen)
        if edits:
            head = "Rules that no record breaks (for `edits` in the plan; judge each):"
            print(head, *(rules or ["none."]), sep="\n  ")
    if out is not None:
        plan = seen.plan(file.resolve(), held, [table.resolve() for table in tables])
        write_atomically(out, _header(seen, rules) + plan.toml())
        idle = plan.count == 1 and plan.data is not None and seen.data is not None  # it masks nothing: why?
        wrong = plan.problems_with(plan.data.apply_to(seen.data)) if idle else []  # type: ignore[union-attr, arg-type]
        next_steps = f"sdcmap check {out}; sdcmap sweep {out} -o study; sdcmap release study"
        advice = f"Look at every proposed role and limit, then: {next_steps}"
        advice = f"It cannot be swept yet: {' '.join(wrong)}" if wrong else advice
        note(f"{out} holds a starting plan of {plan.count} candidates for {held.words}. {advice}")


def _header(seen: Look, rules: Sequence[str]) -> str:
    """What stands above a starting plan: what to do, and what was seen but not applied."""
    text = _PLAN_HEADER
    if codes := ", ".join(f'"{code}"' for code in seen.codes[:MOST_CODES]):
        text += f"# These look like codes for missing values; state those that are: missing = [{codes}]\n#\n"
    if held := "".join(f"#   {json.dumps(rule, ensure_ascii=False)},\n" for rule in rules):
        text += f"# No record breaks these rules; state those that must hold: edits = [\n{held}# ]\n#\n"
    return text + "\n"


MOST_CODES = 20
_PLAN_HEADER = """\
# A starting plan: every line is yours to change, before the first score.
#   [profile]  For whom the file is, and how much risk that allows. The numbers are ours to start from: none is law. A
#              release is held to them on the written file, every column being known that others could know.
#   [rule]     The least loss among what holds every limit: the risk axis is the worst share of its limit, at most 1.
#   [data]     The roles of the columns named in `proposed` are guesses: take a name out of it when its role is right.
#              What only the respondent knows, with the reason: known_by = ["q1,q2=respondent only: an opinion, asked once"]
# Then: sdcmap sweep plan.toml -o study; sdcmap choose study; sdcmap release study --confirm-roles
# Where nothing holds: drop columns, sample, state what only respondents know, or choose another profile with its contract.
# The seed is never written here.
#
"""
