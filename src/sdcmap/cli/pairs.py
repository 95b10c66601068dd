"""Two files of the same people chosen together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sdcmap.cli.app import Json, StudyFolder, app, print_json


@app.command()
def pair(
    study: StudyFolder,
    public: Annotated[
        Path, typer.Argument(help="The plan of the public file; its [data] say the roles of the columns.")
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder; an existing one is gone on with.")] = Path("pair"),
    most: Annotated[
        int, typer.Option(min=1, help="Candidates of each file that are paired, the best by its rule.")
    ] = 5,
    joint: Annotated[float | None, typer.Option(help="Most that who holds both files may find, a share.")] = None,
    weights: Annotated[
        str, typer.Option(help="W1,W2: least W1 * scientific + W2 * public loss; else the scientific file first.")
    ] = "",
    workers: Annotated[int, typer.Option(min=0, help="Number of workers; 0: one per core.")] = 0,
    engine: Annotated[str, typer.Option(help="serial, threads, processes, dask, or dask://HOST:PORT.")] = "",
    quiet: Annotated[bool, typer.Option(help="No progress bar.")] = False,
    as_json: Json = False,
) -> None:
    """Choose a scientific-use file and a public-use file made from it together: both rules, and both files in one hand.

    STUDY is that of the scientific candidates, which has released nothing yet.

    Example: sdcmap pair suf-study public.toml -o pair/

    Example: sdcmap pair suf-study public.toml -o pair/ --joint 0.1 --weights 1,2
    """
    import sdcmap as sm

    silent = (lambda *_: None) if quiet or as_json else None
    pair = sm.choose_pair(
        study, sm.Plan.read(public), out, most=most, joint=joint, weights=_numbers(weights), workers=workers or None,
        engine=engine or None, progress=silent,
    )  # fmt: skip
    if as_json:
        chosen = {"first": pair.first and pair.first.candidate, "second": pair.second and pair.second.candidate}
        place = None if pair.study is None else str(pair.study)
        print_json({**chosen, "study": place, "reason": pair.reason, "pairs": pair.pairs, "unused": pair.unused})
    else:
        print(pair.reason)
        if pair.first and pair.second:
            print(f'Next: sdcmap release {study} "{pair.first.name}" -o scientific/')
            print(f"Then: sdcmap release {pair.study} -o public/ && sdcmap report {pair.study} -o pair.html")
    if pair.first is None:
        raise typer.Exit(3)


def _numbers(text: str) -> tuple[float, float] | None:
    import sdcmap as sm

    if not text:
        return None
    try:
        first, second = map(float, text.split(","))
    except ValueError:
        raise sm.errors.PlanError("--weights are two numbers, such as 1,2.") from None
    return first, second
