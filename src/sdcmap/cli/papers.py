"""`sdcmap paper NAME`: repeat the experiment of a paper and compare it with the printed numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option, Typer

from sdcmap.cli import options
from sdcmap.cli.app import app, note, print_json

if TYPE_CHECKING:
    from sdcmap.papers.reference import Result

HELP = "Repeat the experiment of a paper, beside its printed numbers.\n\nExample: sdcmap paper duncan2001"
paper = Typer(no_args_is_help=True, rich_markup_mode=None, help=HELP)
app.add_typer(paper, name="paper")

DataFolder = Annotated[
    Path | None, Option("--data", help="Folder with reference files (data/, golden/). Default: $SDCMAP_DATA.")
]
Figures = Annotated[Path | None, Option("-o", "--out", help="Folder for the figures, as HTML, SVG and PNG.")]


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


@paper.command()
def trottini2001(
    agency_limit: Annotated[float, Option(help="t_A, limit of the intruder's estimated knowledge.")] = -40.0,
    intruder_limit: Annotated[float, Option(help="t_INT, limit of the risk of discredit harm.")] = -0.8,
    seed: Annotated[int, Option(min=0, help="Seed of the candidates in the worked example.")] = 1,
    data: DataFolder = None,
    out: Figures = None,
    as_json: options.Json = False,
) -> None:
    """Trottini (2001): global risk and utility of example 1, figures 1 and 2, and a choice on a real file.

    Example: sdcmap paper trottini2001 -o figures
    """
    from sdcmap.papers.trottini2001 import run

    show(run(agency_limit=agency_limit, intruder_limit=intruder_limit, data=data, seed=seed), out, as_json)


@paper.command()
def duncan2001(
    n: Annotated[int, Option(help="Records, figures 2 to 4.")] = 200,
    sigma2: Annotated[float, Option(help="Variance of the data, figures 2 to 4.")] = 1.0,
    p: Annotated[float, Option(help="Percentile as a share, figures 3 and 4.")] = 0.99,
    max_risk: Annotated[float, Option(help="Largest tolerable risk, figures 2 to 4.")] = 5.0,
    replicates: Annotated[int, Option(min=2, help="Draws of each masking, figures 5 to 7 (paper: 200).")] = 1000,
    seed: Annotated[int | None, Option(min=0, help="Seed of the simulation. Default: a new random seed.")] = None,
    data: DataFolder = None,
    out: Figures = None,
    as_json: options.Json = False,
) -> None:
    """Duncan, Keller-McNulty, Stokes (2001): the R-U map, figures 2 to 7, compared with the printed values.

    Example: sdcmap paper duncan2001 --replicates 200 -o figures
    """
    from sdcmap.papers.duncan2001 import run

    show(run(n=n, sigma2=sigma2, p=p, max_risk=max_risk, replicates=replicates, data=data, seed=seed), out, as_json)


@paper.command()
def yancey2002(
    seeds: Annotated[int, Option(min=1, help="Random draws for each row of tables 1 to 3.")] = 20,
    large: Annotated[bool, Option("--large", help="Use all 59,315 records of the large file, not a sixth.")] = False,
    seed: options.Seed = None,
    workers: options.Workers = 0,
    data: DataFolder = None,
    out: Figures = None,
    as_json: options.Json = False,
) -> None:
    """Yancey, Winkler, Creecy (2002): noise, rank swapping and record linkage, compared with tables 1 to 9.

    It takes a few minutes on two cores, and a minute or two more with --large.

    Example: sdcmap paper yancey2002 --seeds 20 -o figures
    """
    from sdcmap.papers.yancey2002 import run

    show(run(seeds=seeds, large=large, data=data, seed=seed, workers=workers or None), out, as_json)


@paper.command()
def gomatam2003(
    seeds: Annotated[int, Option(min=1, help="Random draws of each condition.")] = 100,
    seed: options.Seed = None,
    workers: options.Workers = 0,
    data: DataFolder = None,
    out: Figures = None,
    as_json: options.Json = False,
) -> None:
    """Gomatam, Karr, Sanil (2003): 108 swaps and two constrained sets of swaps, figures 2 to 4, the linear optimum.

    Example: sdcmap paper gomatam2003 --seeds 100 -o figures
    """
    from sdcmap.papers.gomatam2003 import run

    show(run(seeds=seeds, data=data, seed=seed, workers=workers or None), out, as_json)


@paper.command()
def seri2005(
    alpha: Annotated[float, Option(help="Share of wrong pairs in a neighborhood.")] = 0.05,
    k: Annotated[int, Option(min=1, help="Number of neighbors that makes a record safe.")] = 15,
    r: Annotated[float, Option(help="Perturbation that makes a record safe.")] = 0.15,
    seed: Annotated[int, Option(min=0, help="Seed of the noise on the two real files.")] = 1,
    data: DataFolder = None,
    out: Figures = None,
    as_json: options.Json = False,
) -> None:
    """Seri (2005): the confidentiality plot, figures 1 and 3, on 157 firms and two real files.

    Example: sdcmap paper seri2005 -o figures
    """
    from sdcmap.papers.seri2005 import run

    show(run(data=data, seed=seed, alpha=alpha, k=k, r=r), out, as_json)
