"""The ledgers of a user: all of them are searched, and each must contain what was recorded of it.

A release is compared with the ledger that was named, $SDCMAP_LEDGER, those in the user's state folder and home folder, as
the system knows them, whatever $HOME says, and every ledger that this user has released with (`ledger_register`). So naming
another ledger hides nothing.

The study and the register record how far the chain of a ledger had come. If the ledger does not contain this head, it was
set back, such as by a restored backup, and the check "ledger" fails. What no record tells is not noticed: a ledger that was
set back together with the studies and the register. Its bundles still tell: `sdcmap ledger show BUNDLE` compares them with
the ledgers. Somebody who has the key can make another chain, which only these records contradict.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock

from sdcmap.bundle.checks import Check
from sdcmap.bundle.ledger import Ledger
from sdcmap.bundle.ledger_chain import Head
from sdcmap.bundle.ledger_folder import LOCK_NAME, default_folders, has_ledger, ledger_folder, set_aside
from sdcmap.bundle.ledger_register import Registered, register_ledger, registered_ledgers
from sdcmap.errors import SdcmapError
from sdcmap.study.folder import Manifest, Study
from sdcmap.study.plan import Plan


class KnownLedgers(NamedTuple):
    """The ledgers of a user.

    searched : those that can be read, first the one that records the release. problems : why others cannot be read.
    missing : ledgers that are registered and were not found.
    """

    searched: tuple[Ledger, ...]
    problems: tuple[str, ...] = ()
    registered: tuple[Head, ...] = ()
    missing: tuple[Registered, ...] = ()

    @property
    def own_folder(self) -> Path:
        """The folder of the ledger that records the release."""
        return self.searched[0].folder.resolve()

    @property
    def ids(self) -> list[str]:
        """The ids of the ledgers that were searched."""
        return [ledger.id for ledger in self.searched]

    def contain(self, head: Head) -> bool:
        """Return whether the ledger of this head contains it: the one that records the release, or any copy of another."""
        copies = [ledger for ledger in self.searched if ledger.id == head.ledger]
        return any(ledger.contains(head) for ledger in (copies[:1] if self.searched[0] in copies else copies))


def find_ledgers(ledger: Ledger) -> KnownLedgers:
    """Return the ledgers of this user, first the one that records the release."""
    searched, problems = [ledger], list[str]()
    try:
        registered = registered_ledgers()
    except SdcmapError as error:
        registered, problems = [], [str(error)]
    unreadable = set[Path]()
    for folder in dict.fromkeys([*(home.resolve() for home in default_folders()), *(one.folder for one in registered)]):
        try:
            if folder != ledger.folder.resolve() and has_ledger(folder):
                searched.append(Ledger.open_readonly(folder))
        except (OSError, SdcmapError) as error:
            problems.append(str(error) if isinstance(error, SdcmapError) else f"The ledger {folder} cannot be read.")
            unreadable.add(folder)
    ids = {one.id for one in searched}
    missing = [one for one in registered if one.head.ledger not in ids and one.folder not in unreadable]
    return KnownLedgers(tuple(searched), tuple(problems), tuple(one.head for one in registered), tuple(missing))


def record_head(ledger: Ledger, study: Study | None) -> None:
    """Record in the user's register and in the study how far a ledger has come, so that it is noticed if it is set back."""
    head = ledger.head
    register_ledger(ledger.folder, head)
    if study is not None:
        study.note(ledgers={**study.manifest.get("ledgers", {}), head.ledger: head.facts})


def recorded_heads(plan: Plan, study: Study | None) -> list[Head]:
    """Return what was recorded of ledgers by the study of a release, and by the study that released its data."""
    manifests = [] if study is None else [study.manifest]
    if plan.data is not None and plan.data.within:
        manifests.append(Study.manifest_of(Path(plan.data.within)))
    return [head for manifest in manifests for head in _heads_in(manifest)]


def _heads_in(manifest: Manifest) -> list[Head]:
    """Return the heads that a study recorded; earlier versions recorded the ids of ledgers alone."""
    heads = [Head.of_facts(facts) for facts in manifest.get("ledgers", {}).values()]
    known = {head.ledger for head in heads}
    names = dict.fromkeys(str(entry["ledger"]) for entry in manifest.get("releases", []) if "ledger" in entry)
    return [*heads, *(Head(name, 0, "") for name in names if name not in known)]


def check_ledgers(known: KnownLedgers, recorded: Sequence[Head]) -> Check:
    """Check that every ledger that a study recorded was searched, and contains what was recorded of it.

    recorded : heads that the study recorded; without a link where it recorded the ledger alone.
    """
    used, *others = known.ids
    count = f"{len(others)} other ledger{' of this user was' if len(others) == 1 else 's of this user were'} searched"
    searched = f"Ledger {used} is used; {count}{f' ({_list(others)})' if others else ''}."
    if vanished := [one.head.ledger for one in known.missing if one.folder != known.own_folder]:
        searched += f" Not found: {_list(vanished)}, which this user released with before."
    problems = find_problems(known, recorded)
    if not problems:
        return Check("ledger", True, searched)
    advice = "Restore or name that ledger, or state why its releases do not matter."
    return Check("ledger", False, f"{searched} {' '.join(problems)} {advice}")


def find_problems(known: KnownLedgers, recorded: Sequence[Head] = ()) -> list[str]:
    """Return why the ledgers of a user are not complete, each in a sentence."""
    elsewhere = dict.fromkeys(head.ledger for head in recorded if head.ledger not in known.ids)
    heads = [head for head in (*recorded, *known.registered) if head.ledger in known.ids and head.entries]
    set_back = dict.fromkeys(head.ledger for head in heads if not known.contain(head))
    gone = [one.head.ledger for one in known.missing if one.folder == known.own_folder]
    problems = [*known.problems]
    if elsewhere:
        problems.append(f"Earlier releases of this study are in another ledger ({_list(elsewhere)}).")
    if set_back:
        reason = "a backup was restored, or entries were deleted"
        problems.append(f"Ledger {_list(set_back)} lacks entries that were recorded: {reason}.")
    if gone:
        problems.append(f"The ledger that was in {known.own_folder} before ({_list(gone)}) is gone.")
    return problems


def restart_ledger(folder: Path | None, reason: str) -> Path:
    """Start a new ledger in the place of another, which is set aside; return the folder that the other is moved to.

    reason : why the releases of the other ledger do not matter; the new ledger records it.
    """
    home = ledger_folder(folder)
    if not reason.strip():
        raise SdcmapError("starting a new ledger needs a reason in words.")
    if not has_ledger(home):
        raise SdcmapError(f"{home} contains no ledger. The first release with it creates one.")
    try:
        with FileLock(home / LOCK_NAME, mode=0o600):
            aside = set_aside(home)
    except OSError as error:
        raise SdcmapError(f"the ledger {home} cannot be written ({error.strerror}).") from None
    with Ledger.open_locked(home) as ledger:
        ledger.record_restart(reason)
        register_ledger(home, ledger.head)
    return aside


def find_bundle_problem(known: KnownLedgers, bundle: Path) -> str:
    """Return why no ledger vouches for a bundle; empty where one contains what the bundle's note states."""
    try:
        facts = json.loads((bundle / "note.json").read_text(encoding="utf-8")).get("ledger")
        head = None if facts is None else Head.of_facts(facts)
    except (OSError, ValueError, AttributeError, KeyError, TypeError):
        raise SdcmapError(f"{bundle} contains no method note that can be read.") from None
    if head is None:
        return "it states no ledger"
    if head.ledger not in known.ids:
        return f"ledger {head.ledger} was not found"
    return "" if known.contain(head) else f"ledger {head.ledger} lacks its entry: it was set back"


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)
