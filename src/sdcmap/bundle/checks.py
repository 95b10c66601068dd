"""Release checks: the table that describes each check, the result of a check, and the checks that need no score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sdcmap.core import Array, Microdata, did_you_mean
from sdcmap.core.edit_rule import parse_edit
from sdcmap.core.formatting import format_percent, list_names
from sdcmap.core.limit import Verdict
from sdcmap.core.release_policy import ReleasePolicy
from sdcmap.data.identifiers import find_coordinates, is_record_number
from sdcmap.data.schema import NEVER_RELEASED, UNSUPPORTED_ROLES
from sdcmap.kernels.tables.coding import compress
from sdcmap.risk.marked_records import find_marked_rows
from sdcmap.study.plan import Plan

MAX_NAMES_LISTED = 12  # columns that a sentence names; a longer list is not read


@dataclass(frozen=True)
class CheckKind:
    """What is true of every result of one release check."""

    label: str  # the check's name for people, at most 40 characters
    description: str  # one sentence for a board: what must be true of the file
    remedy: str = ""  # what to do when it fails; empty: it only informs and cannot fail
    can_override: bool = False  # a person may release the file all the same, with a written reason
    is_measured: bool = False  # it compares measured values with limits, so another candidate may pass
    is_published: bool = False  # the method note tells data users that it was overridden


# By name, in the order of a release. A person who knows better may override some; every other check is final.
CHECK_KINDS: Mapping[str, CheckKind] = {
    "choice": CheckKind(
        "A candidate was chosen",
        "The rule of the plan, or a person, chose a candidate to release.",
        "Read the reason of the choice. Plan other methods, or search for one.",
    ),
    "seed": CheckKind(
        "Seed cannot be guessed",
        "The random seed is long enough that nobody can undo the masking by trying seeds.",
        "Remove the seed from the plan and sweep again: sdcmap then draws a long one.",
    ),
    "roles": CheckKind(
        "Roles of the columns are confirmed",
        "A person stated or confirmed the role of every column.",
        "Review every column and state its role, then confirm the proposed roles.",
    ),
    "identifier": CheckKind(
        "No direct identifiers",
        "No released column looks like a name, a number of a record or a coordinate.",
        "State identifiers as identifiers, so that they are not released. If a column is none, say why.",
        can_override=True,
    ),
    "round trip": CheckKind(
        "File reads back unchanged",
        "The written file contains the released values and nothing else.",
        "Write the file in another format: this one cannot store what is released.",
    ),
    "recoverable": CheckKind(
        "Masked values cannot be recovered",
        "The other released columns do not give back the values of a masked column.",
        "Drop one of the named columns, or mask them together, so that one no longer determines the other.",
    ),
    "weight": CheckKind(
        "Survey weights do not identify",
        "Few records of a public file can be recognized by their survey weight.",
        "Average the weights in groups (AverageWeights as a step of the plan), or say why nobody knows the weights.",
        can_override=True,
    ),
    "missing patterns": CheckKind(
        "Missing values do not identify",
        "Enough records share each combination of missing values that an attacker could know.",
        "Add MaskMissing as the first step of each chain, over all columns that others could know, or say why nobody knows "
        "who did not answer.",
        can_override=True,
    ),
    "limit": CheckKind(
        "A risk limit is stated",
        "Somebody stated how much disclosure risk is acceptable.",
        "State limits by measure, a rule with a limit or a profile in the plan, or the largest risk for this release.",
    ),
    "ledger": CheckKind(
        "Ledger of releases is complete",
        "Every ledger that this study or this user released with was searched, and lacks nothing that was recorded of it.",
        "Name the ledger that contains the earlier releases, restore it from a backup, or say why they do not matter.",
        can_override=True,
    ),
    "earlier releases": CheckKind(
        "Earlier releases are considered",
        "No other file about the same people was released, or the joint risk of all files was measured.",
        "Release the earlier file again. If this file is needed too, allow another release of the same records: the "
        "joint risk then decides.",
    ),
    "draws": CheckKind(
        "No lucky draw",
        "The method was tried in few releases, so the file did not pass by luck.",
        "Choose another method, or repeat a release of this one that was checked before.",
    ),
    "tries": CheckKind(
        "A try is left",
        "Few candidates were measured anew for these data and this profile, so none passed by luck.",
        "Release from new data, state another profile with its reason, or state why one more try is acceptable.",
        can_override=True,
        is_published=True,
    ),
    "edits": CheckKind(
        "Edit rules still hold",
        "The released records obey the edit rules that the original records obey.",
        "Add Repair as the last step of the plan.",
        can_override=True,
    ),
    "loss": CheckKind(
        "Utility limits of the plan",
        "The written file keeps as much utility as the plan demands.",
        "Choose a candidate with less loss, plan weaker methods, or search for one.",
        is_measured=True,
    ),
    "risk": CheckKind(
        "Risk limits of the plan",
        "The risk of the written file, measured anew, is within the limits of the plan and its rule.",
        "Choose a candidate with less risk, plan stronger methods, or search for one.",
        is_measured=True,
    ),
    "other risk": CheckKind(
        "Risks without a limit",
        "Other risk measures of the plan, for information.",
    ),
    "unmasked": CheckKind(
        "No amount is released unmasked",
        "The file is masked, and so is every amount that somebody other than the respondent could know.",
        "Mask the named columns. If only the respondent knows an amount, state that in the data (known_by).",
        can_override=True,
        is_published=True,
    ),
    "profile": CheckKind(
        "Limits of the release profile",
        "An attacker who knows every column that others could know stays within the limits of the release profile.",
        "Mask more of the named columns, mask them more strongly, search, or choose a profile with a contract.",
        can_override=True,
        is_measured=True,
        is_published=True,
    ),
    "information": CheckKind(
        "Further results",
        "What attackers with less or more knowledge achieve, and doubts about stated numbers, for information.",
    ),
    "nested": CheckKind(
        "Risk of the second file alone",
        "A file made from a released file is within its limits for an attacker who holds the original records.",
        "Choose a candidate with less risk.",
    ),
    "joint risk": CheckKind(
        "Risk of all releases together",
        "An attacker who holds all releases about the same people stays within the limits.",
        "Choose a candidate with less risk, or release nothing more about these people.",
    ),
    "pair": CheckKind(
        "Both files of a pair can be chosen",
        "A scientific-use and a public-use file can still be chosen together.",
        "Choose the pair before either file is released, from studies of the original.",
    ),
}
# Names of checks in versions up to 0.1, for the hint in an error message.
RENAMED_CHECKS = {
    "gate": "profile",
    "line": "limit",
    "told": "information",
    "determines": "recoverable",
    "redraws": "draws",
    "read back": "round trip",
}


def check_label(name: str) -> str:
    """Return the label and the code name of a check; a name of version 0.1 counts as its new one.

    >>> check_label("limit")
    'A risk limit is stated (limit)'
    """
    name = RENAMED_CHECKS.get(name, name)
    return f"{CHECK_KINDS[name].label} ({name})" if name in CHECK_KINDS else name


@dataclass(frozen=True)
class Check:
    """The result of one release check: its name, whether it passed, and one sentence why.

    tested : False where the check could not be made on this file, so it says nothing about the file.
    verdict : the comparison with the limit, where the check compares a value with one limit.
    """

    name: str
    passed: bool
    reason: str
    tested: bool = True
    verdict: Verdict | None = None

    @property
    def kind(self) -> CheckKind:
        """What is true of every result of this check."""
        return CHECK_KINDS[self.name]

    @property
    def is_hard(self) -> bool:
        """Whether the check cannot be overridden."""
        return not self.kind.can_override

    @property
    def is_measured(self) -> bool:
        """Whether it compares measured values with limits, so that another candidate may pass."""
        return self.kind.is_measured

    @property
    def remedy(self) -> str:
        """What to do about a failed check; empty where it passed."""
        return "" if self.passed else self.kind.remedy

    def __str__(self) -> str:
        return f"{check_label(self.name)}: {self.reason}"


def apply_overrides(checks: Sequence[Check], override: Mapping[str, str]) -> tuple[list[Check], list[dict[str, str]]]:
    """Return the checks with overridden failures counted as passed, and each override that was needed."""
    results, used = [], {}
    for check in checks:
        if not check.passed and check.name in override:
            reason = used[check.name] = override[check.name]
            check = replace(check, passed=True, reason=f"{check.reason} Overridden: {reason}")
        results.append(check)
    return results, [{"check": name, "reason": reason} for name, reason in used.items()]


def override_problems(override: Mapping[str, str]) -> Iterator[str]:
    """Yield every reason why these checks cannot be overridden."""
    for name, reason in override.items():
        if name in RENAMED_CHECKS:
            yield f"there is no check {name!r} to override. Did you mean {RENAMED_CHECKS[name]!r}, its new name?"
        elif name not in CHECK_KINDS:
            yield f"there is no check {name!r} to override.{did_you_mean(name, CHECK_KINDS)}"
        elif not CHECK_KINDS[name].can_override:
            allowed = [other for other, kind in CHECK_KINDS.items() if kind.can_override]
            yield f"the check {name!r} cannot be overridden; only {list_names(allowed)} can."
        elif not isinstance(reason, str) or not reason.strip():
            yield f"overriding the check {name!r} needs a reason in words."


# ---- checks that need no score --------------------------------------------------------------------------------
def check_seed(plan: Plan) -> Check:
    """Check that the seed is too long to guess: the method is published, so the seed undoes the masking."""
    bits = plan.policy.seed_bits
    if plan.seed.bit_length() >= bits:
        return Check("seed", True, f"The seed has at least {bits} bits.")
    problem = f"The seed of the plan has fewer than {bits} bits and could be guessed."
    return Check("seed", False, f"{problem} Remove it, and sdcmap draws a longer one.")


def check_draws(draws: int, limit: int) -> Check:
    """Check that few releases tried this method: of many draws of a risky method, one passes by luck."""
    if draws > limit:
        return Check("draws", False, f"{limit} other releases have tried this method before; no more are allowed.")
    count = f"{draws} release{'s have' if draws > 1 else ' has'} tried this method"
    return Check("draws", True, f"{count}; at most {limit} may.")


def check_roles(data: Microdata, proposed: Sequence[str] = (), confirmed: bool = False) -> Check:
    """Check that a person stated or confirmed the role of every column, and that every role is supported."""
    if unstated := data.schema.of_role(None):
        problem = f"No role is stated for {_first_names(unstated)}."
        return Check("roles", False, f"{problem} State it when reading the data.")
    if unserved := [*data.schema.unsupported_roles(*UNSUPPORTED_ROLES)]:
        return Check("roles", False, " ".join(unserved))
    if proposed and not confirmed:
        problem = f"Nobody has confirmed the proposed roles of {_first_names(proposed)}."
        advice = "Review them and remove them from `proposed` in the plan, or confirm all of them (--confirm-roles)."
        return Check("roles", False, f"{problem} {advice}")
    note = f"; {len(proposed)} proposed roles were confirmed all at once" if proposed else ""
    return Check("roles", True, f"Every column has a stated role{note}.")


def _first_names(names: Sequence[str]) -> str:
    """Return the first names in quotes, and how many more there are."""
    more = f" and {len(names) - MAX_NAMES_LISTED} more" if len(names) > MAX_NAMES_LISTED else ""
    return ", ".join(map(repr, names[:MAX_NAMES_LISTED])) + more


def check_identifiers(released: Microdata, policy: ReleasePolicy) -> Check:
    """Check that no column looks like an identifier with another role; `released` is still in file order."""
    # The original column is examined: an identifier is still one after noise was added.
    before = released if released.base is None else released.base
    numbers = {name: _nonmissing_numbers(before, name) for name in released.numeric if name in before.numeric}
    alike = [v.name for v in released.schema.variables if _looks_like_identifier(released, before, v.name, policy)]
    problems = [f"Nearly every record has its own value of {', '.join(map(repr, alike))}."] if alike else []
    if pair := find_coordinates(numbers):
        problems.append(f"{', '.join(map(repr, pair))} look like coordinates.")
    if not problems:
        return Check("identifier", True, "No released column looks like an identifier.")
    return Check("identifier", False, f"{' '.join(problems)} State identifiers as identifiers.")


def _nonmissing_numbers(data: Microdata, name: str) -> Array:
    return data.numbers(name)[~data.missing(name)]


def _looks_like_identifier(data: Microdata, before: Microdata, name: str, policy: ReleasePolicy) -> bool:
    """Return whether a text has nearly as many values as records, a category as many, or a number counts records."""
    variable = data.schema[name]
    if variable.role in ("household", "stratum", "weight", *NEVER_RELEASED):
        return False
    if data.column(name).levels is None:
        return is_record_number(_nonmissing_numbers(before, name))
    codes = data.codes(name)[~data.missing(name)]
    is_text = variable.storage in ("String", "Categorical", "Enum")
    return len(codes) > 1 and len(np.unique(codes)) >= (policy.distinct_values if is_text else 1.0) * len(codes)


def check_edits(edits: Sequence[str], data: Microdata, released: Microdata, max_share: float) -> Check:
    """Check that few records break an edit rule: they mislead users, and attackers see that they were masked."""
    rules = [parse_edit(text) for text in edits]
    readable = tuple(rule for rule in rules if not any(rule.reading_problems(released, data)))
    lost = len(rules) - len(readable)
    not_tested = f" {lost} of the rules were not tested: the released columns no longer allow it." if lost else ""
    broken, rows = int(find_marked_rows(readable, data, released).sum()), len(released)
    count = f"{broken:,} of {rows:,} records break one of the {len(rules)} edit rules that the original obeys"
    if broken <= max_share * rows:
        return Check("edits", True, f"{count}.{not_tested}")
    advice = "An attacker sees that they were masked. Mask the columns of the rule together."
    return Check("edits", False, f"{count}, more than {format_percent(max_share)}. {advice}{not_tested}")


def check_weight(released: Microdata, unmasked_keys: Sequence[str], profile: str, max_share: float) -> Check:
    """Check that few records have a unique weight, which works as a key; a scientific-use file is only reported on."""
    if released.weight is None:
        return Check("weight", True, "The file has no weight.")
    strata = released.schema.of_role("stratum")
    alone, with_keys = (_unique_share(released, (released.weight, *strata, *keys)) for keys in ((), unmasked_keys))
    passed = profile == "scientific-use" or alone <= max_share
    columns = f"their weight{' and stratum' if strata else ''} ({format_percent(with_keys)} with the unmasked keys)"
    count = f"{format_percent(alone)} of the records are unique on {columns}"
    if passed:
        return Check("weight", True, f"{count}.")
    advice = "Round the weights, or calibrate them in coarser groups."
    return Check("weight", False, f"{count}, more than {format_percent(max_share)}. {advice}")


def check_kept_survey_columns(released: Microdata, linkable: Sequence[str], profile: str, max_share: float) -> Check:
    """Check that few rows of a fully synthetic file can be recognized by the weight, stratum or household that they keep.

    linkable : the columns whose values still are those of a person. A household is recognized by its size, and by the
    weights and strata of its members, if only one household has them.
    """
    kept = [name for name in released.schema.of_role("weight", "stratum") if name in linkable]
    codes = [released.codes(name) for name in kept]
    unit, words = np.arange(len(released)), [*kept]
    if released.household is not None and released.household in linkable:
        # a person without a household number is a household of one
        own = released.codes(released.household).astype(np.int64)
        unit = np.unique(
            np.where(released.missing(released.household), own.max() + 1 + unit, own), return_inverse=True
        )[1]
        codes, words = [*codes, np.bincount(unit)[unit]], [*words, "household size"]
    if not words:
        return Check("weight", True, "No row of the fully synthetic file keeps a survey column.")
    cell, _ = compress(codes)
    first = np.unique(np.column_stack([cell, unit]), axis=0)[:, 0]
    alone = float((np.bincount(first)[cell] == 1).mean())
    count = f"{format_percent(alone)} of the synthetic records keep a value that no other unit has ({', '.join(words)})"
    if profile == "scientific-use" or alone <= max_share:
        return Check("weight", True, f"{count}.")
    advice = "Draw the weight too (name it in Synthesize.on), or average it."
    return Check("weight", False, f"{count}, more than {format_percent(max_share)}. {advice}")


def _unique_share(data: Microdata, names: Sequence[str]) -> float:
    cell, count = compress([data.codes(name) for name in names])
    return float((count[cell] == 1).mean())
