"""The commands that open the workbench and the documentation in a browser, and `sdcmap study repair`."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

from typer import Argument, Option, Typer

from sdcmap.cli import options
from sdcmap.cli.app import app, note


@app.command()
def serve(
    study: Annotated[Path | None, Argument(help="Study to open; the folder that contains it is served.")] = None,
    port: Annotated[int, Option(min=0, max=65535, help="Port; 0: any free port.")] = 0,
    open_browser: Annotated[bool, Option("--open", help="Open the page in a browser.")] = False,
    folder: Annotated[
        Path | None, Option(help="Folder with data files and studies. Default: the current folder.")
    ] = None,
    upload_limit: Annotated[int, Option(min=1, help="Largest upload, in MB.")] = 200,
    host: Annotated[str, Option(help="Address to listen on. Default: this machine only.")] = "127.0.0.1",
    workers: options.Workers = 0,
    ledger: options.Ledger = None,
) -> None:
    """Serve the workbench in a browser.

    The workbench covers the whole workflow; the same operations are a web service under /api.

    Example: sdcmap serve cps-study --open
    """
    from sdcmap.errors import MissingExtra, SdcmapError

    try:
        import fastapi  # noqa: F401
        import python_multipart  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise MissingExtra("The workbench needs more packages. Run: pip install 'sdcmap[web]'") from None
    from sdcmap.web.request_guard import LOOPBACK_NAMES
    from sdcmap.web.server import serve as run
    from sdcmap.web.workspace import Workspace

    study = study and study.resolve()
    home = (folder or (study.parent if study else Path())).resolve()
    if not home.is_dir():
        raise SdcmapError(f"There is no folder {home}.")
    workspace = Workspace(home, upload_limit << 20, ledger and ledger.resolve())
    if study and study.parent != home:
        raise SdcmapError(f"The study must be in the served folder, {home}.")
    page = f"/studies/{workspace.study(study.name).name}/map" if study else "/"
    if host not in LOOPBACK_NAMES:
        note(f"Listening on {host} without encryption: anyone with the address and its token can see the data.")
    run(workspace, host=host, port=port, page=page, workers=workers, open_browser=open_browser)


DOCS_PAGE = Path(__file__).parents[1] / "site" / "index.html"  # written by `make site`; wheels include it


@app.command()
def docs(
    where: Annotated[bool, Option("--where", help="Only print where the pages are.")] = False,
) -> None:
    """Open the documentation in a browser; it works offline.

    Example: sdcmap docs
    """
    from sdcmap.errors import SdcmapError

    if not DOCS_PAGE.exists():
        raise SdcmapError(
            f"{DOCS_PAGE.parent} does not contain the documentation. Run `make site` in the source folder."
        )
    print(DOCS_PAGE)
    if not where:
        webbrowser.open(DOCS_PAGE.as_uri())


group = Typer(no_args_is_help=True, help="Maintain a study folder.\n\nExample: sdcmap study repair cps-study")
app.add_typer(group, name="study")


@group.callback()
def _group() -> None:
    """Keep `repair` a subcommand: typer would merge a single command into its group."""


@group.command()
def repair(study: options.StudyFolder) -> None:
    """Repair a study whose database is damaged.

    Every readable row is kept; the next sweep computes the others again. The damaged file is renamed, not deleted. An
    undamaged study is not changed.

    Example: sdcmap study repair cps-study
    """
    from sdcmap.study.database_repair import repair as repair_study

    print(f"{study}: {repair_study(study)}")
