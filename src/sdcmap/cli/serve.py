"""The commands that open the workbench and the documentation in the browser."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

from typer import Argument, Option, Typer

from sdcmap.cli import options
from sdcmap.cli.app import app, note

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@app.command()
def serve(
    study: Annotated[Path | None, Argument(help="A study to open; its folder's neighbors are served too.")] = None,
    port: Annotated[int, Option(min=0, max=65535, help="0: any that is free.")] = 0,
    open_browser: Annotated[bool, Option("--open", help="Open the page in a browser.")] = False,
    folder: Annotated[Path | None, Option(help="Folder with data files and studies; default: this one.")] = None,
    upload_limit: Annotated[int, Option(min=1, help="Largest file that may be sent, in MB.")] = 200,
    host: Annotated[str, Option(help="Address to listen at; by default this machine alone.")] = "127.0.0.1",
    workers: options.Workers = 0, ledger: options.Ledger = None,
) -> None:  # fmt: skip
    """Open the workbench in the browser: the whole line from a file to a release, and the service under /api.

    Example: sdcmap serve cps-study --open
    """
    from sdcmap.errors import MissingExtra, SdcmapError

    try:
        import fastapi  # noqa: F401
        import python_multipart  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise MissingExtra("the workbench needs: pip install 'sdcmap[web]'") from None
    from sdcmap.web.server import serve as run
    from sdcmap.web.workspace import Workspace

    study = study and study.resolve()
    home = (folder or (study.parent if study else Path())).resolve()
    if not home.is_dir():
        raise SdcmapError(f"there is no folder {home}.")
    room = Workspace(home, upload_limit << 20, ledger and ledger.resolve())
    if study and study.parent != home:
        raise SdcmapError(f"the study must lie in the folder that is served, {home}.")
    page = f"/studies/{room.study(study.name).name}/map" if study else "/"
    if host not in LOOPBACK:
        note(f"listening at {host}: everybody who has the address with its token sees the data, unencrypted.")
    run(room, host=host, port=port, page=page, workers=workers, open_browser=open_browser)


PAGES = Path(__file__).parents[1] / "site" / "index.html"  # `make site` writes it there, and a wheel carries it


@app.command()
def docs(
    where: Annotated[bool, Option("--where", help="Print where the pages are, and open nothing.")] = False,
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


group = Typer(no_args_is_help=True, help="Look after a study folder.\n\nExample: sdcmap study repair cps-study")
app.add_typer(group, name="study")


@group.callback()
def _group() -> None:
    """Keeps `repair` a word of its own."""


@group.command()
def repair(study: options.StudyFolder) -> None:
    """Keep every whole row of a study whose database is damaged; the next sweep makes the rest again.

    The damaged file is put aside, not deleted. An undamaged study is left as it is.

    Example: sdcmap study repair cps-study
    """
    from sdcmap.study.database_repair import repair as repaired

    print(f"{study}: {repaired(study)}")
