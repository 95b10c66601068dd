"""`sdcmap paper NAME`: repeat the experiment of a paper, or run its analysis on a file of your own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Context, Option, Typer

from sdcmap.cli import options
from sdcmap.cli.app import DIALECT_OPTIONS, add_file_options, app, note, print_json

if TYPE_CHECKING:
    from sdcmap.papers.reference import Result

HELP = """Repeat the experiment of a paper beside its printed numbers, or run its analysis on your own file.

Example: sdcmap paper duncan2001

Example: sdcmap paper duncan2001 --file my.csv --on income -o my-income"""
paper = Typer(no_args_is_help=True, rich_markup_mode=None, help=HELP)
app.add_typer(paper, name="paper")

ROLES = ("keys", "numeric", "sensitive", "identifiers", "weight", "household")
DataFolder = Annotated[
    Path | None, Option("--data", help="Folder with reference files (data/, golden/). Default: $SDCMAP_DATA.")
]
OutFolder = Annotated[
    Path | None,
    Option(
        "-o", "--out", help="Folder for the figures, as HTML, SVG and PNG; with --file also plan, study, tables, page."
    ),
]
OwnFile = Annotated[Path | None, Option("--file", help="Run the analysis on this file instead.")]
On = Annotated[str, Option("--on", help="With --file: comma-separated variables to study. Default: proposed.")]
Within = Annotated[str, Option("--within", help="With --file: comma-separated categories; see the description.")]
Draws = Annotated[int, Option(min=1, help="With --file: draws of each masking.")]

# Options that have no effect with --file, and those that need it.
PAPER_ONLY = {"duncan2001": ("n", "sigma2", "p", "max_risk", "data"), "yancey2002": ("large", "data")}
OWN_ONLY = (
    "on", "within", "error", "above", "rate", "same", "differ", "slope", "unsafe", *ROLES, *DIALECT_OPTIONS, "missing",
)  # fmt: skip
OWN_DRAWS = ("trottini2001", "seri2005")  # commands whose --replicates needs --file
ARGUMENTS = {"seeds": "replicates", "rate": "rates"}  # options that the analysis calls otherwise
COMMON = ("file", "on", "out", "as_json", "ctx")


def show(result: Result, out: Path | None, as_json: bool) -> None:
    """Write the figures, then print the result as JSON or as text."""
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        for name, chart in result.figures.items():
            for form in ("html", "svg", "png"):
                chart.save(out / f"{name}.{form}")
        note(f"{out}: {', '.join(result.figures)}")
    if as_json:
        print_json(result.document)
    else:
        print("\n".join(result.lines))


def analyze_own_file(ctx: Context, given: dict[str, Any]) -> bool:
    """Run the analysis on the user's file and return True; return False where no file is stated.

    Only stated options are passed on, because defaults differ. An option without effect is an error.
    """
    name = str(ctx.info_name)
    sources = ((option, ctx.get_parameter_source(option)) for option in ctx.params)
    stated = [option for option, source in sources if source is not None and source.name == "COMMANDLINE"]
    _check_options(name, stated)
    if "file" not in stated:
        return False
    from sdcmap.papers import run
    from sdcmap.papers.analysis import DO_NOT_PUBLISH, PAGE_NAME

    of_file = (*COMMON, *ROLES, *DIALECT_OPTIONS, "missing")  # `given` has the roles and the dialect
    chosen = {ARGUMENTS.get(option, option): ctx.params[option] for option in stated if option not in of_file}
    if "within" in chosen:
        chosen["within"] = chosen["within"].split(",")
    file = Path(ctx.params["file"])
    out = Path(ctx.params["out"] or f"{name}-{file.stem}")
    if "workers" in chosen:
        chosen["workers"] = chosen["workers"] or None
    on = ctx.params["on"].split(",") if ctx.params["on"] else []
    analysis = run(name, file, on=on, out=out, **chosen, **given)
    if ctx.params["as_json"]:
        print_json({**analysis.document, "out": str(out)})
    else:
        print("\n".join(analysis.lines))
    files = f"{out / PAGE_NAME} has all figures and tables; plan.toml and study/ beside it continue the work"
    note(f"{files} (sdcmap map {out / 'study'}). {DO_NOT_PUBLISH}")
    return True


def _check_options(name: str, stated: list[str]) -> None:
    """Raise PlanError for an option without effect: one of the paper's experiment with --file, or the reverse."""
    from sdcmap.errors import PlanError

    has_file = "file" in stated
    own = (*OWN_ONLY, *(("replicates",) if name in OWN_DRAWS else ()))
    unused = PAPER_ONLY.get(name, ("data",)) if has_file else own
    if vain := [f"--{option.replace('_', '-')}" for option in stated if option in unused]:
        remedy = "Leave it out, or leave out --file." if has_file else "State the file with --file."
        where = "has no effect on a file of your own" if has_file else "needs --file"
        raise PlanError(f"{vain[0]} {where}. {remedy}")


@paper.command()
@add_file_options(*ROLES)
def trottini2001(
    ctx: Context,
    given: dict[str, Any],
    file: OwnFile = None,
    on: On = "",
    agency_limit: Annotated[
        float, Option(help="t_A, limit of the intruder's estimated knowledge. Default with --file: -0.5.")
    ] = -40.0,
    intruder_limit: Annotated[
        float, Option(help="t_INT, limit of the risk of discredit harm. Default with --file: -0.5.")
    ] = -0.8,
    replicates: Draws = 20,
    seed: Annotated[int, Option(min=0, help="Seed of the candidates. Default with --file: a new random seed.")] = 1,
    data: DataFolder = None,
    out: OutFolder = None,
    as_json: options.Json = False,
) -> None:
    """Trottini (2001): global risk and utility of example 1, figures 1 and 2, and a choice on a real file.

    With --file, --on is what the intruder wants to know (a number or a category), and --keys what they know. The file
    needs both; the limits are shares of the uncertainty before the release.

    Example: sdcmap paper trottini2001 -o figures

    Example: sdcmap paper trottini2001 --file my.csv --on income --keys age,sex,region --agency-limit -0.5
    """
    if analyze_own_file(ctx, given):
        return
    from sdcmap.papers.trottini2001 import run

    show(run(agency_limit=agency_limit, intruder_limit=intruder_limit, data=data, seed=seed), out, as_json)


@paper.command()
@add_file_options(*ROLES)
def duncan2001(
    ctx: Context,
    given: dict[str, Any],
    file: OwnFile = None,
    on: On = "",
    error: Annotated[
        float | None, Option(help="With --file: the attacker's smallest tolerable error. Default: 38 % of the sd.")
    ] = None,
    above: Annotated[
        float | None,
        Option(help="With --file: unequal masking doubles the noise above this. Default: 90th percentile."),
    ] = None,
    n: Annotated[int, Option(help="Records, figures 2 to 4.")] = 200,
    sigma2: Annotated[float, Option(help="Variance of the data, figures 2 to 4.")] = 1.0,
    p: Annotated[float, Option(help="Percentile as a share, figures 3 and 4.")] = 0.99,
    max_risk: Annotated[float, Option(help="Largest tolerable risk, figures 2 to 4.")] = 5.0,
    replicates: Annotated[
        int, Option(min=2, help="Draws of each masking, figures 5 to 7 (paper: 200). Default with --file: 200.")
    ] = 1000,
    seed: Annotated[int | None, Option(min=0, help="Seed of the simulation. Default: a new random seed.")] = None,
    data: DataFolder = None,
    out: OutFolder = None,
    as_json: options.Json = False,
) -> None:
    """Duncan, Keller-McNulty, Stokes (2001): the R-U map, figures 2 to 7, compared with the printed values.

    With --file, --on is one numeric variable, and figures 2 to 7 are simulated on it.

    Example: sdcmap paper duncan2001 --replicates 200 -o figures

    Example: sdcmap paper duncan2001 --file my.csv --on income --error 5000 -o my-income
    """
    if analyze_own_file(ctx, given):
        return
    from sdcmap.papers.duncan2001 import run

    show(run(n=n, sigma2=sigma2, p=p, max_risk=max_risk, replicates=replicates, data=data, seed=seed), out, as_json)


@paper.command()
@add_file_options(*ROLES)
def yancey2002(
    ctx: Context,
    given: dict[str, Any],
    file: OwnFile = None,
    on: On = "",
    within: Within = "",
    seeds: Annotated[
        int, Option(min=1, help="Random draws for each row of tables 1 to 3. Default with --file: 5.")
    ] = 20,
    large: Annotated[bool, Option("--large", help="Use all 59,315 records of the large file, not a sixth.")] = False,
    seed: options.Seed = None,
    workers: options.Workers = 0,
    data: DataFolder = None,
    out: OutFolder = None,
    as_json: options.Json = False,
) -> None:
    """Yancey, Winkler, Creecy (2002): noise, rank swapping and record linkage, compared with tables 1 to 9.

    It takes a few minutes on two cores, and a minute or two more with --large. With --file, --on are at least two
    numeric variables, and --within divides the file into the subpopulations of tables 8 and 9.

    Example: sdcmap paper yancey2002 --seeds 20 -o figures

    Example: sdcmap paper yancey2002 --file my.csv --on income,tax,rent --within region -o my-tables
    """
    if analyze_own_file(ctx, given):
        return
    from sdcmap.papers.yancey2002 import run

    show(run(seeds=seeds, large=large, data=data, seed=seed, workers=workers or None), out, as_json)


@paper.command()
@add_file_options(*ROLES)
def gomatam2003(
    ctx: Context,
    given: dict[str, Any],
    file: OwnFile = None,
    on: On = "",
    rate: Annotated[list[float], Option(help="With --file: pairs to swap as a share of the records; repeatable.")] = [],  # noqa: B006
    same: Annotated[
        str, Option(help="With --file: the two records of a constrained swap agree in this variable.")
    ] = "",
    differ: Annotated[str, Option(help="With --file: the two records of a constrained swap differ in it.")] = "",
    slope: Annotated[
        float | None, Option(help="With --file: state the rule: the least risk + slope x distortion.")
    ] = None,
    seeds: Annotated[int, Option(min=1, help="Random draws of each condition. Default with --file: 20.")] = 100,
    seed: options.Seed = None,
    workers: options.Workers = 0,
    data: DataFolder = None,
    out: OutFolder = None,
    as_json: options.Json = False,
) -> None:
    """Gomatam, Karr, Sanil (2003): 108 swaps and two constrained sets of swaps, figures 2 to 4, the linear optimum.

    With --file, --keys are the variables of the table, and --on those that are swapped; all must have categories.

    Example: sdcmap paper gomatam2003 --seeds 100 -o figures

    Example: sdcmap paper gomatam2003 --file my.csv --on age,sex,marital --same sex --rate 0.01 --rate 0.05
    """
    if analyze_own_file(ctx, given):
        return
    from sdcmap.papers.gomatam2003 import run

    show(run(seeds=seeds, data=data, seed=seed, workers=workers or None), out, as_json)


@paper.command()
@add_file_options(*ROLES)
def seri2005(
    ctx: Context,
    given: dict[str, Any],
    file: OwnFile = None,
    on: On = "",
    within: Within = "",
    unsafe: Annotated[
        float, Option(help="With --file: the largest tolerable share of unsafe records. Default: 0.05.")
    ] = 0.05,
    replicates: Draws = 10,
    alpha: Annotated[float, Option(help="Share of wrong pairs in a neighborhood.")] = 0.05,
    k: Annotated[int, Option(min=1, help="Number of neighbors that makes a record safe.")] = 15,
    r: Annotated[float, Option(help="Perturbation that makes a record safe.")] = 0.15,
    seed: Annotated[int, Option(min=0, help="Seed of the noise. Default with --file: a new random seed.")] = 1,
    data: DataFolder = None,
    out: OutFolder = None,
    as_json: options.Json = False,
) -> None:
    """Seri (2005): the confidentiality plot, figures 1 and 3, on 157 firms and two real files.

    With --file, --on are the amounts that an attacker compares, and --within the categories that must agree.

    Example: sdcmap paper seri2005 -o figures

    Example: sdcmap paper seri2005 --file firms.csv --on turnover,employees --within nace --unsafe 0.1 -o my-firms
    """
    if analyze_own_file(ctx, given):
        return
    from sdcmap.papers.seri2005 import run

    show(run(data=data, seed=seed, alpha=alpha, k=k, r=r), out, as_json)
