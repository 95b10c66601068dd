"""`sdcmap paper seri2005`."""

from __future__ import annotations

from typing import Annotated

import typer

from sdcmap.cli.app import Json
from sdcmap.cli.papers import DataFolder, Figures, paper, show


@paper.command()
def seri2005(
    alpha: Annotated[float, typer.Option(help="Share of wrong pairs in a neighbourhood.")] = 0.05,
    k: Annotated[int, typer.Option(min=1, help="So many neighbours are safe.")] = 15,
    r: Annotated[float, typer.Option(help="So much perturbation is safe.")] = 0.15,
    seed: Annotated[int, typer.Option(min=0, help="Of the noise on the two real files.")] = 1,
    data: DataFolder = None,
    out: Figures = None,
    as_json: Json = False,
) -> None:
    """Seri (2005): the confidentiality plot, figures 1 and 3, on 157 firms and two real files.

    Example: sdcmap paper seri2005 -o figures
    """
    from sdcmap.papers.seri2005 import run

    show(run(data=data, seed=seed, alpha=alpha, k=k, r=r), out, as_json)
