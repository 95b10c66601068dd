"""`sdcmap look`: the format and columns of a file, unique records, remarks, and a starting plan."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from sdcmap.cli import options
from sdcmap.cli.app import ROLES, add_file_options, app, note, print_json

if TYPE_CHECKING:
    from rich.table import Table

    from sdcmap.explore.first_look import ColumnSummary, Look

MAX_COLUMNS_SHOWN = 60  # in the table of columns; --json lists all
MAX_COLUMNS_EXPLAINED = 20  # one by one in a plan; the columns of a larger file are grouped by the reason of their role
MAX_CODES_SHOWN = 20  # codes that look like missing values, and columns with mixed values


def show(title: str, overview: Look) -> None:
    """Print the summary of a file. It shows counts only, except for codes that look like missing values."""
    from rich.console import Console

    # Column names are printed literally, even if they look like markup.
    console = Console(markup=False, emoji=False, highlight=False)
    if overview.source is not None and overview.source.dialect.words:
        console.print(f"{title} is read with {overview.source.dialect.words}.")
    if len(overview.variables) == 1:
        console.print("The file was read as one column. If that is wrong, state the separator, such as --sep ';'.")
    for part in (
        _column_table(title, overview),
        *_unique_record_tables(overview),
        *(f"- {line}" for line in _remarks(overview)),
    ):
        console.print(part)


def _column_table(title: str, overview: Look) -> Table:
    from rich.table import Table

    table = Table(title=f"{title}: {overview.rows:,} rows")
    for head in ("variable", "kind", "role", "distinct", "missing", "unique", "reason"):
        # long names and reasons are wrapped, not cut
        table.add_column(head, overflow="fold", no_wrap=head not in ("variable", "reason"))
    for column in overview.variables[:MAX_COLUMNS_SHOWN]:
        role = column.role if column.stated else f"{column.role}?"
        counts = f"{column.distinct:,}", f"{column.missing:,}", f"{column.once:,}"
        table.add_row(column.name, column.kind, role, *counts, _explain_role(column))
    if len(overview.variables) > MAX_COLUMNS_SHOWN:
        table.caption = f"and {len(overview.variables) - MAX_COLUMNS_SHOWN:,} more columns; --json lists them all"
    return table


def _explain_role(column: ColumnSummary) -> str:
    """Return how sure a proposal is, why it was made, and what the values show."""
    formula = f"= {column.formula} within {column.rounding:g}" if column.formula else ""
    harbor = f"Safe Harbor {column.safe_harbor}" if column.safe_harbor else ""
    why = column.why if column.stated else f"{column.certainty}: {column.why}"
    return "; ".join(part for part in (why, formula, harbor, column.evidence) if part)


def _unique_record_tables(overview: Look) -> tuple[Table, Table]:
    """Return the unique records by what an attacker knows, and by the most identifying columns."""
    from rich.table import Table

    by_knowledge = Table("the attacker knows", "columns", "unique records", "share", title="Unique records")
    for knowledge, (columns, count) in overview.unique.items():
        by_knowledge.add_row(knowledge, f"{columns:,}", f"{count:,}", f"{count / overview.rows:.1%}")
    caption = overview.identifying.words
    by_columns = Table("columns", "unique records", "share", title="Most identifying columns", caption=caption)
    for names, count in overview.identifying.sets:
        by_columns.add_row(", ".join(names), f"{count:,}", f"{count / overview.rows:.1%}")
    return by_knowledge, by_columns


def _remarks(overview: Look) -> Iterator[str]:
    from sdcmap.core.formatting import count_of, list_names
    from sdcmap.data.identifiers import SAFE_HARBOR
    from sdcmap.study.plan_remarks import describe_people

    if overview.sizes:
        (_, unique), (least, few), *more = (
            (int(size.lstrip("<")) - 1, count) for size, count in overview.sizes.items()
        )
        larger = list_names([f"{count:,} in those of at most {most}" for most, count in more])
        yield (
            f"The keys have {count_of(overview.cells, 'combination')}. {unique:,} of {count_of(overview.rows, 'record')} "
            f"are unique on the keys; {few:,} are in combinations of at most {least} records, {larger}."
        )
    else:
        yield "No column is a key."
    yield from _what_is_left_out(overview)
    if codes := ",".join(overview.codes[:MAX_CODES_SHOWN]):
        yield f'These values look like codes for missing values. State those that are: --missing "{codes}"'
    advice = "State its codes for missing values, or leave it as text."
    for name, count in list(overview.mixed.items())[:MAX_CODES_SHOWN]:
        yield f"Column {name} contains numbers and {count:,} values that are not numbers. {advice}"
    yield from describe_people(overview.data_with_roles)
    if classes := sorted({column.safe_harbor for column in overview.variables} - {""}):
        yield f"Safe Harbor classes: {'; '.join(f'{letter}, {SAFE_HARBOR[letter]}' for letter in classes)}."
    yield "Roles with ? are proposed; confirm them. `unique` counts records whose value no other record has."


def _what_is_left_out(overview: Look) -> Iterator[str]:
    """Yield which columns are not released, and which values count as missing, with counts. No row is left out."""
    for role, words in (("identifier", "Removed as identifiers"), ("drop", "Left out of the release")):
        if columns := [column for column in overview.variables if column.role == role]:
            names = ", ".join(f"{c.name} ({c.why})" for c in columns[:MAX_COLUMNS_SHOWN])
            more = f", and {len(columns) - MAX_COLUMNS_SHOWN:,} more" if len(columns) > MAX_COLUMNS_SHOWN else ""
            yield f"{words}: {len(columns):,} of {len(overview.variables):,} columns: {names}{more}."
    if overview.read_as_missing:
        counts = ", ".join(f"{code} ({count:,} values)" for code, count in overview.read_as_missing.items())
        yield f"Read as missing, because all other values of the column are numbers: {counts}."


@app.command()
@add_file_options(*ROLES, "other", "drop", "replicate", "psu", "wave", "case")
def look(
    file: options.File,
    given: dict[str, Any],
    census: Annotated[bool, Option("--census", help="The file contains the whole population.")] = False,
    edits: Annotated[bool, Option("--edits", help="Show the edit rules that a starting plan would state.")] = False,
    known_by: Annotated[list[str], Option(help='Who can know columns: "q1,q2=respondent only: the reason".')] = [],  # noqa: B006
    profile: Annotated[
        str, Option(help="Release profile: public-use, scientific-use, teaching or business.")
    ] = "public-use",
    ddi: Annotated[
        Path | None, Option(help="DDI Codebook (codebook.xml) with labels, universes and codes for missing values.")
    ] = None,
    within: Annotated[
        Path | None, Option(help="Study that released this file, to make a public-use file from it.")
    ] = None,
    tables: Annotated[
        list[Path], Option(help="Published table of the same people, with columns and `count`; repeatable.")
    ] = [],  # noqa: B006
    out: Annotated[Path | None, Option("-o", "--out", help="Write a starting plan to this file.")] = None,
    as_json: options.Json = False,
) -> None:
    """Show the columns, proposed roles and unique records of a file.

    With -o, a starting plan is written.

    Example: sdcmap look cps.csv --sensitive Income --profile public-use -o plan.toml

    Example: sdcmap look umfrage.csv --sep ";" --decimal "," --encoding cp1252 --missing "k.A.,lohn=-8"

    Example: sdcmap look survey.csv --ddi codebook.xml -o plan.toml

    Example: sdcmap look survey.csv --tables age-by-region.csv --tables sex-by-region.csv -o plan.toml

    Example: sdcmap look suf/data.csv --ddi suf/codebook.xml --within suf-study --profile public-use -o puf.toml
    """
    import sdcmap as sm
    from sdcmap.core.formatting import count_of
    from sdcmap.data.private_folder import write_atomically
    from sdcmap.explore.first_look import look as look_at
    from sdcmap.study.limits_at_size import describe_limits, nothing_can_pass
    from sdcmap.study.profiles import to_profile

    has_all = any(names == "all" for names in given.values())
    paths = {name: str(path.resolve()) for name, path in (("ddi", ddi), ("within", within)) if path is not None}
    named = {name: names for name, names in given.items() if names != "all"}
    source = sm.Source(str(file), **named, **paths, census=census, known_by=tuple(known_by)).with_dialect()  # type: ignore[arg-type]
    release_profile = to_profile(profile)
    overview = look_at(
        source if not has_all else sm.read(file, **given, census=census, known_by=known_by, ddi=source.ddi)
    )
    overview = overview if overview.source is not None else replace(overview, source=source)
    limits, off = overview.limits(release_profile), overview.limits_off(release_profile)
    if as_json:
        print_json(overview.facts | {"limits": limits, "limits_off": off})
    else:
        show(file.name, overview)
        print(f"Limits of the profile {release_profile.words}, with the roles above:")
        print(*(f"- {line}" for line in (*describe_limits(limits, overview.data_with_roles), *off.values())), sep="\n")
    if not edits and out is None:
        return
    plan = overview.plan(file.resolve(), release_profile, [table.resolve() for table in tables])
    if edits and not as_json:
        head = "Rules that every record satisfies (a starting plan repairs what breaks them; check each):"
        print(head, *(plan.edits or ["none."]), sep="\n  ")
    if out is not None:
        write_atomically(out, _header(overview) + plan.toml())
        # A plan with one candidate masks nothing: explain why.
        is_empty = plan.count == 1 and plan.data is not None and overview.data is not None
        problems = plan.problems_with(plan.data.apply_to(overview.data)) if is_empty else []  # type: ignore[union-attr, arg-type]
        next_steps = f"sdcmap check {out}; sdcmap sweep {out} -o study; sdcmap release study"
        advice = f"Review every proposed role and limit, then run: {next_steps}"
        if nothing_can_pass(limits):
            advice = "With so few records no candidate can be released; the limits above say what can be done instead."
        advice = f"It cannot be swept yet: {' '.join(problems)}" if problems else advice
        note(
            f"{out} contains a starting plan with {count_of(plan.count, 'candidate')} for {release_profile.words}. {advice}"
        )


def _header(overview: Look) -> str:
    """Return the comment at the top of a starting plan: what to do, and what was noticed but not applied."""
    text = _PLAN_HEADER + _proposal_comments(overview)
    if codes := ", ".join(f'"{code}"' for code in overview.codes[:MAX_CODES_SHOWN]):
        said = f"These values look like codes for missing values. State those that are: missing = [{codes}]"
        text += "\n".join([*(f"# {line}" for line in _wrap(said)), "#"]) + "\n"
    return text + "\n"


def _proposal_comments(overview: Look) -> str:
    """Return a comment for each proposed role: how sure it is, why it was made, and what the values show."""
    proposed = [column for column in overview.variables if not column.stated]
    lines = [f"#   {line}" for line in _explain_roles(proposed)]
    lines += [
        f"# {line}" for said in _what_is_left_out(overview) for line in textwrap.wrap(said, 115, subsequent_indent="  ")
    ]
    head = "# Proposed roles, how sure each is, and why:"
    return "\n".join(map(_on_one_line, [head, *lines, "#"])) + "\n" if proposed else ""


def _explain_roles(proposed: Sequence[ColumnSummary]) -> Iterator[str]:
    """Yield a line for each column and what its values show; in a file of many columns, a line for each reason."""
    if len(proposed) <= MAX_COLUMNS_EXPLAINED:
        width = min(30, max((len(column.name) for column in proposed), default=0))
        yield from (f"{column.name:{width}}  {column.role:10}  {_explain_role(column)}" for column in proposed)
        return
    alike: dict[tuple[str, str], list[str]] = {}
    for column in proposed:
        why = _explain_role(column if column.formula or column.safe_harbor else replace(column, evidence=""))
        alike.setdefault((column.role, why), []).append(column.name)
    for (role, why), names in alike.items():
        listed = [_on_one_line(name) for name in names[:MAX_COLUMNS_SHOWN]]
        more = f" and {len(names) - MAX_COLUMNS_SHOWN:,} more" if len(names) > MAX_COLUMNS_SHOWN else ""
        yield from _wrap(f"{role}, {why}: {', '.join(listed)}{more}")


def _wrap(comment: str) -> list[str]:
    return textwrap.wrap(comment, 115, subsequent_indent="  ")


def _on_one_line(comment: str) -> str:
    """Return a comment without line breaks, which a column's name may contain."""
    return " ".join(comment.splitlines())


_PLAN_HEADER = """\
# A starting plan. Change any line, but do so before the first score.
#   [profile]  For whom the file is, and how much risk that allows. The numbers are defaults, not law. The release checks
#              compare the written file with them, assuming an attacker who knows every column that others could know.
#   [rule]     The smallest loss among candidates within every limit. The risk axis is the largest share of a limit.
#              The loss is the error of users' analyses: regressions, tables, means and distributions chosen by the roles.
#              Add your own, once for all measures: [[analyses]] model = "log(wage) ~ age + sex"
#   edits      Rules that every record satisfies. Remove what holds by chance. Masked records that break one are
#              repaired; on a column that a candidate recodes, only where an interval decides it (see `sdcmap check`).
#   [columns]  Sets of columns: `on = "keys"` stands for all of them, `on = ["keys", "-sex"]` for all but one.
#   [steps]    Steps of methods, stated once. A list of strengths, `leaf = [50, 100]`, is a method for each.
#              Lists of one entry have equal length and go together: the first method has the first value of each.
#   [data]     Roles of columns in `proposed` are guesses. Remove a name from `proposed` once its role is right.
#              What only respondents know, with the reason: known_by = ["q1,q2=respondent only: an opinion, asked once"]
# Then: sdcmap sweep plan.toml -o study; sdcmap choose study; sdcmap release study --confirm-roles
# If no candidate is within the limits: drop columns, sample, state what only respondents know, or use another profile.
# The seed is never written here.
#
"""
