"""Run the whole analysis of a paper on a user's own file."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from sdcmap import sweep
from sdcmap.errors import PlanError, did_you_mean
from sdcmap.papers import (
    duncan2001_own_file,
    gomatam2003_own_file,
    seri2005_own_file,
    trottini2001_own_file,
    yancey2002_own_file,
)
from sdcmap.papers.analysis import Analysis, Section
from sdcmap.papers.own_file import open_own_file
from sdcmap.study.progress import Progress

PAPERS: dict[str, ModuleType] = {
    "trottini2001": trottini2001_own_file, "duncan2001": duncan2001_own_file, "yancey2002": yancey2002_own_file,
    "gomatam2003": gomatam2003_own_file, "seri2005": seri2005_own_file,
}  # fmt: skip
# Arguments of `read`; the others are options of the paper.
FILE_ARGUMENTS = (
    "keys", "numeric", "sensitive", "identifiers", "weight", "household", "stratum", "other", "drop", "missing", "sep",
    "decimal", "thousands", "quote", "encoding",
)  # fmt: skip
TEXT_ARGUMENTS = ("sep", "decimal", "thousands", "quote", "encoding")
ROLES_TEXT = (
    "Roles that are stated, and roles that were proposed as `sdcmap look` does. Review the proposed ones before "
    "you rely on "
    "the numbers: state a role by its option to change it. plan.toml marks them as proposed, so that a release asks for "
    "them."
)


def run(
    paper: str, file: str | Path, *, on: str | Sequence[str] = (), out: str | Path | None = None, seed: int | None = None,
    workers: int | None = None, progress: Progress | None = None,
    **options: str | float | Sequence[str] | Sequence[float] | None,
) -> Analysis:  # fmt: skip
    """Run the analysis of a paper on a file: plan, sweep, figures in the paper's layout, tables, and what they show here.

    Parameters
    ----------
    paper : "duncan2001", "gomatam2003", "seri2005", "trottini2001" or "yancey2002".
    file : the file, in any format that `read` knows.
    on : the variables to study: one number (Duncan), several (Seri, Yancey), the categories to swap (Gomatam), or what an
        intruder wants to know (Trottini). By default they are proposed from the file.
    out : a folder for plan.toml, the study, figures, tables and paper.html; an interrupted run is continued. By default
        nothing is written; `Analysis.write` does it later.
    seed : of the whole run; by default a random one, as a release needs it.
    options : roles and dialect, as the arguments of `read` (`keys`, `sensitive`, `weight`, `missing`, `sep`, ...), and
        options of the paper: `replicates` for all; `error`, `above` (Duncan); `rates`, `same`, `differ`, `slope`
        (Gomatam); `within`, `alpha`, `k`, `r`, `unsafe` (Seri); `agency_limit`, `intruder_limit` (Trottini); `within`
        (Yancey).

    Roles that are not stated are proposed as `look` does; the last section lists them. A file that does not suit the paper
    is refused with what the paper needs.
    """
    if paper not in PAPERS:
        raise PlanError(f"no paper {paper!r}.{did_you_mean(paper, list(PAPERS))} There are: {', '.join(PAPERS)}.")
    module = PAPERS[paper]
    given = {name: _to_names(name, options.pop(name)) for name in list(options) if name in FILE_ARGUMENTS}
    known = [name for name in inspect.signature(module.design).parameters if name != "own"]
    if unknown := [name for name in options if name not in known]:
        names = ", ".join(known)
        raise PlanError(f"{paper} has no option {unknown[0]!r}.{did_you_mean(unknown[0], known)} It has: {names}.")
    options = {name: _to_tuple(value) if name in ("within", "rates") else value for name, value in options.items()}
    own = open_own_file(paper, file, _to_tuple(on), module.ON_ROLE, given)
    design = module.design(own, **options)
    plan = design.plan(seed)
    if problems := plan.problems_with(own.data):
        raise PlanError(problems)
    folder = None if out is None else Path(out)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        plan.write(folder / "plan.toml")  # before the first score
    scores = sweep(own.data, plan, None if folder is None else folder / "study", workers=workers, progress=progress)
    sections, choice = design.sections(scores)
    roles = Section("roles", "Table: roles of the columns", ROLES_TEXT, table=own.roles())
    introduction = (own.describe(), *design.introduction())
    analysis = Analysis(paper, module.CITATION, introduction, (*sections, roles), scores.plan or plan, scores, choice)
    if folder is not None:
        analysis.write(folder)
    return analysis


def _to_names(name: str, value: Any) -> Any:
    """Return a role as the names of columns; texts of the dialect as they are."""
    return value if name in TEXT_ARGUMENTS else _to_tuple(value)


def _to_tuple(value: Any) -> tuple[Any, ...]:
    return (value,) if isinstance(value, str | int | float) else tuple(value)
