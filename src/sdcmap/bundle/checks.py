"""The checks of a release: what each is called, whether a person may override it, and those that need no score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sdcmap.core import Array, Microdata, did_you_mean
from sdcmap.core.edit_rule import parse_edit
from sdcmap.core.limit import Verdict
from sdcmap.core.release_policy import ReleasePolicy
from sdcmap.data.identifiers import find_coordinates, is_record_number
from sdcmap.data.schema import NEVER_RELEASED, UNSUPPORTED_ROLES
from sdcmap.kernels.tables.coding import compress
from sdcmap.risk.marked_records import marked_rows
from sdcmap.study.plan import Plan

# a person who knows better may override these with a written reason; every other check is hard
SOFT = ("identifier", "weight", "edits", "ledger", "unmasked", "gate")
REMEDIES = {  # what a person does about a check that failed
    "seed": "leave the seed out of the plan and sweep again: a strong one is drawn.",
    "roles": "look at every column and state its role, then confirm the roles that were proposed.",
    "determines": "drop one of the columns named, or mask them together, so that one does not give the other back.",
    "line": "state a rule with a limit, limits by measure or a profile in the plan, or the largest risk for this release.",
    "redraws": "choose another method, or a draw of this one that was checked before.",
    "loss": "choose a candidate that keeps more, plan weaker methods, or search for one.",
    "risk": "choose a candidate with less risk, plan stronger methods, or search for one.",
    "read back": "write the file in another format: this one does not hold what was released.",
    "earlier releases": "release the earlier file again; or, where this one is needed too, allow another release of the "
    "same records: then the joint risk decides.",
    "nested": "choose a candidate with less risk: who holds the truth finds too many in this file.",
    "joint risk": "choose a candidate with less risk, or release nothing more of these people.",
    "identifier": "state identifiers as such, so that they stay here; where a column is none, say why.",
    "weight": "average the weights in groups (AverageWeights as a step of the plan), or say why nobody knows them.",
    "edits": "add Repair as the last step of the plan.",
    "ledger": "name the ledger that knows the earlier releases of this study, or say why it is gone.",
    "unmasked": "mask what is named; an amount that nobody but the respondent knows is stated as such (known_by).",
    "choice": "see what the reason says; plan other methods, or search for one.",
    "pair": "choose the pair before either file is released, from studies of the original.",
    "gate": "mask more of the columns named, or more strongly; search; or choose a profile with a contract.",
}
TOLD_IN_THE_NOTE = ("unmasked", "gate")  # overrides of these are a data user's business too
REPORTED = ("other risk", "told")  # never fail
MEASURED = ("risk", "loss", "gate")  # compare measured risks with limits
MOST_NAMED = 12  # columns that a sentence names


@dataclass(frozen=True)
class Check:
    """One check of a release: its name, whether it passed, and one sentence why.

    tested : False where the check could not be made on this file, so that it says nothing of it.
    verdict : how the file stands to the limit that was checked, where it was one.
    """

    name: str
    passed: bool
    reason: str
    tested: bool = True
    verdict: Verdict | None = None

    @property
    def is_hard(self) -> bool:
        """Whether nobody can override it."""
        return self.name not in SOFT

    @property
    def is_measured(self) -> bool:
        """Whether it compares a measured risk with a limit, so that another candidate may pass."""
        return self.name in MEASURED

    @property
    def remedy(self) -> str:
        """What to do about it; empty where it passed."""
        return "" if self.passed else REMEDIES[self.name]

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


def overridden(checks: Sequence[Check], override: Mapping[str, str]) -> tuple[list[Check], list[dict[str, str]]]:
    """The checks with the failed soft ones passed where a reason is stated, and what was overridden with its reason."""
    said, used = [], {}
    for check in checks:
        if not check.passed and check.name in override:
            reason = used[check.name] = override[check.name]
            check = replace(check, passed=True, reason=f"{check.reason} Overridden: {reason}")
        said.append(check)
    return said, [{"check": name, "reason": reason} for name, reason in used.items()]


def problems_of_override(override: Mapping[str, str]) -> Iterator[str]:
    """Every reason why these checks cannot be overridden."""
    for name, reason in override.items():
        if name not in (*REMEDIES, *REPORTED):
            yield f"there is no check {name!r} to override.{did_you_mean(name, REMEDIES)}"
        elif name not in SOFT:
            yield f"the check {name!r} cannot be overridden; only {join_names(SOFT)} can."
        elif not isinstance(reason, str) or not reason.strip():
            yield f"overriding the check {name!r} needs a reason in words."


# ---- checks that need no score --------------------------------------------------------------------------------
def check_seed(plan: Plan) -> Check:
    """With the method published and a small seed, trying seeds gives the data back."""
    bits = plan.policy.seed_bits
    if plan.seed.bit_length() >= bits:
        return Check("seed", True, f"the seed has at least {bits} bits.")
    short = f"the plan's seed has fewer than {bits} bits and could be guessed"
    return Check("seed", False, f"{short}: leave it out, and one is drawn.")


def check_redraws(draws: int, most: int) -> Check:
    """Of many draws of a method that is too risky one passes by luck, so few may be tried."""
    if draws > most:
        return Check("redraws", False, f"{most} other draws of this method came to the gate before, and no more may.")
    told = f"{draws} {'draws' if draws > 1 else 'draw'} of this method came to the gate, of at most {most}."
    return Check("redraws", True, told)


def check_roles(data: Microdata, proposed: Sequence[str] = (), confirmed: bool = False) -> Check:
    """Every column has a role that somebody stated or confirmed, and that something serves."""
    if unstated := data.schema.of_role(None):
        return Check("roles", False, f"nobody has stated a role for {_some(unstated)}: state it when reading the data.")
    if unserved := [*data.schema.unsupported_roles(*UNSUPPORTED_ROLES)]:
        return Check("roles", False, " ".join(unserved))
    if proposed and not confirmed:
        advice = "look at them and take them out of the plan's `proposed`, or confirm all of them (--confirm-roles)"
        return Check("roles", False, f"nobody has confirmed the roles proposed for {_some(proposed)}: {advice}.")
    told = f"; {len(proposed)} proposed roles were confirmed all at once" if proposed else ""
    return Check("roles", True, f"every column has a stated role{told}.")


def join_names(names: Sequence[str]) -> str:
    """Names as a person lists them: a, b and c."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _some(names: Sequence[str]) -> str:
    """A few names, and how many more there are."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(map(repr, names[:MOST_NAMED])) + more


def check_identifiers(released: Microdata, policy: ReleasePolicy) -> Check:
    """No column looks like an identifier that was stated as something else; `released` is still in file order."""
    before = released if released.base is None else released.base  # an identifier stays one under noise
    numbers = {name: _known_numbers(before, name) for name in released.numeric if name in before.numeric}
    alike = [v.name for v in released.schema.variables if _looks_like_identifier(released, before, v.name, policy)]
    told = [f"nearly every record has a value of its own in {', '.join(map(repr, alike))}"] if alike else []
    if places := find_coordinates(numbers):
        told.append(f"{', '.join(map(repr, places))} look like coordinates")
    if not told:
        return Check("identifier", True, "no released column looks like an identifier.")
    return Check("identifier", False, f"{'; '.join(told)}: state identifiers as such.")


def _known_numbers(data: Microdata, name: str) -> Array:
    return data.numbers(name)[~data.missing(name)]


def _looks_like_identifier(data: Microdata, before: Microdata, name: str, policy: ReleasePolicy) -> bool:
    """Text with a value for nearly each record, any category for each; a number where it numbers the records."""
    variable = data.schema[name]
    if variable.role in ("household", "stratum", "weight", *NEVER_RELEASED):
        return False
    if data.column(name).levels is None:
        return is_record_number(_known_numbers(before, name))
    known = data.codes(name)[~data.missing(name)]
    text = variable.storage in ("String", "Categorical", "Enum")
    return len(known) > 1 and len(np.unique(known)) >= (policy.distinct_values if text else 1.0) * len(known)


def check_edits(edits: Sequence[str], data: Microdata, released: Microdata, most: float) -> Check:
    """Records that break an edit rule of the plan are nonsense to users and tell a snooper who was masked."""
    rules = [parse_edit(text) for text in edits]
    readable = tuple(rule for rule in rules if not any(rule.reading_problems(released, data)))
    lost = len(rules) - len(readable)
    gone = f"; {lost} can no longer be read in the released columns" if lost else ""
    marked, rows = int(marked_rows(readable, data, released).sum()), len(released)
    told = f"{marked:,} of {rows:,} records break one of {len(rules)} edit rules that held in the original{gone}"
    if marked <= most * rows:
        return Check("edits", True, f"{told}.")
    advice = "they are known to be masked; mask the columns of the rule together"
    return Check("edits", False, f"{told}, more than {most:.1%}: {advice}.")


def check_weight(released: Microdata, unmasked_keys: Sequence[str], profile: str, most: float) -> Check:
    """A weight that is nearly a record's own is a key; scientific users get the count only."""
    if released.weight is None:
        return Check("weight", True, "the file has no weight.")
    strata = released.schema.of_role("stratum")
    alone, with_keys = (_unique_share(released, (released.weight, *strata, *keys)) for keys in ((), unmasked_keys))
    passed = profile == "scientific-use" or alone <= most
    also = f"{' and stratum' if strata else ''} ({with_keys:.0%} with the unmasked keys)"
    advice = "" if passed else f", more than {most:.0%}: round the weights or calibrate them in coarser groups"
    return Check("weight", passed, f"{alone:.0%} of the records are alone with their weight{also}{advice}.")


def _unique_share(data: Microdata, names: Sequence[str]) -> float:
    cell, count = compress([data.codes(name) for name in names])
    return float((count[cell] == 1).mean())
