"""The commands of the steward of a ledger: show the ledgers, start one anew, and forget one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Exit, Option, Typer

from sdcmap.cli import options
from sdcmap.cli.app import app, note, print_json

group = Typer(no_args_is_help=True, help="Look after the ledger of releases.\n\nExample: sdcmap ledger show")
app.add_typer(group, name="ledger")


@group.command()
def show(
    bundles: Annotated[list[Path], Argument(help="Folders of releases to look up.", show_default=False)] = [],  # noqa: B006
    ledger: options.Ledger = None,
    as_json: options.Json = False,
) -> None:
    """Show every ledger of this user, and whether each can vouch for its entries.

    Bundles are looked up too: a ledger that was set back does not contain the entry that a bundle states. The exit code is
    3 if a ledger is missing, was set back or was changed.

    Example: sdcmap ledger show

    Example: sdcmap ledger show public/ --ledger agency-ledger
    """
    from sdcmap.bundle.known_ledgers import find_bundle_problem, find_ledgers, find_problems
    from sdcmap.bundle.ledger import Ledger

    known = find_ledgers(Ledger.open_readonly(ledger))
    problems = find_problems(known)
    found = ((bundle, find_bundle_problem(known, bundle)) for bundle in bundles)
    problems += [f"No ledger vouches for {bundle}: {problem}." for bundle, problem in found if problem]
    missing = [f"Ledger {one.head.ledger} was not found in {one.folder}." for one in known.missing]
    shown = [one for one in known.searched if one.exists]
    if as_json:
        facts = [
            {"id": one.id, "folder": str(one.folder), "releases": len(one.entries()), "links": one.head.entries}
            for one in shown
        ]
        print_json({"ledgers": facts, "missing": missing, "problems": problems})
    else:
        for one in shown:
            print(f"{one.id}: {len(one.entries())} releases, {one.head.entries} links in its chain, in {one.folder}")
            for made, why in one.restart_reasons():
                print(f"  started in place of another on {made[:10]}: {why}")
        print(*missing, *(problems or ["No entry that was recorded is missing."]), sep="\n")
    if problems:
        raise Exit(3)


@group.command()
def restart(
    reason: Annotated[
        str, Option(help="Why the releases of the ledger do not matter any more; the new one records it.")
    ],
    ledger: options.Ledger = None,
) -> None:
    """Start a new ledger in the place of one that is damaged or was set back.

    The other ledger is set aside within its folder, not deleted. A study that was released with it still asks for it: state
    the reason again, with `sdcmap release --override "ledger=..."`.

    Example: sdcmap ledger restart --reason "The disk failed. Its two releases were withdrawn."
    """
    from sdcmap.bundle.known_ledgers import restart_ledger

    print(f"A new ledger was started. The other was moved to {restart_ledger(ledger, reason)}.")


@group.command()
def forget(
    name: Annotated[str, Argument(metavar="ID", help="Id of the ledger, as `sdcmap ledger show` prints it.")],
) -> None:
    """Forget a ledger that is gone for good, so that releases do not search it any more.

    Example: sdcmap ledger forget 3f9a5c7e12d4
    """
    from sdcmap.bundle.ledger_register import forget_ledger

    forget_ledger(name)
    note(f"Releases do not search ledger {name} any more.")
