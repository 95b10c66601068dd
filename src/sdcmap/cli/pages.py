"""The command that opens the documentation."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from sdcmap.cli.app import app

PAGES = Path(__file__).parents[1] / "site" / "index.html"  # `make site` writes it there, and a wheel carries it


@app.command()
def docs(
    where: Annotated[bool, typer.Option("--where", help="Print where the pages are, and open nothing.")] = False,
) -> None:
    """Open the documentation in the browser: tutorials, decisions, theory, gallery, reference; no network is needed.

    Example: sdcmap docs
    """
    from sdcmap.errors import SdcmapError

    if not PAGES.exists():
        raise SdcmapError(f"{PAGES.parent} has no pages: `make site` in the source folder makes them.")
    print(PAGES)
    if not where:
        webbrowser.open(PAGES.as_uri())
