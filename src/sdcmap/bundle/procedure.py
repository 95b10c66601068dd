"""The procedure of a release: a few candidates are fixed, and each is drawn and measured anew until one passes.

The study only orders candidates. Its figures are too low for the candidate that was chosen by them, so a release uses none
of them. The candidates are written to the ledger before the first of them is drawn again. Each try has its own error
probability (`ReleasePolicy.try_errors`), and the first candidate that passes is written.

A file above a limit passes try j with a probability of at most its error, because the candidate was fixed before and the
draw, the samples and the refits are new. So the procedure writes a file above a limit in at most the sum of the errors of
all studies, 5 % by default. The errors are those of a data set and a profile: what earlier procedures spent is not
renewed by another seed, plan or rule. Nothing is corrected for the number of limits, because a file must meet all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict, TypeVar

from sdcmap.bundle.checks import Check
from sdcmap.bundle.ledger import Ledger, ProcedureEntry
from sdcmap.core import Microdata
from sdcmap.core.formatting import format_percent
from sdcmap.core.release_policy import ReleasePolicy
from sdcmap.data.schema import NEVER_RELEASED
from sdcmap.study.plan import Candidate

FIRST_RELEASE_DRAW = 1_000_000_000  # replicate numbers from here on belong to releases: no sweep or search reaches them
MAX_DRAWS_OF_CANDIDATE = 1_000  # releases of one candidate have different numbers up to so many
MAX_INFEASIBLE_DRAWS = 20  # a random method may fail by chance, so a release makes up to so many draws of a candidate
C = TypeVar("C")


@dataclass(frozen=True)
class Try:
    """One try: the candidate, the error probability that it spends, and how it ended.

    passed : None where a check that needs no measurement failed, so that nothing was measured and nothing is spent.
    """

    number: int  # among the tries of these data and this profile, from 1
    name: str  # of the candidate, for people
    error: float
    passed: bool | None
    checks: tuple[Check, ...] = ()
    method: str = ""  # the text of its method

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if not check.passed)

    def __str__(self) -> str:
        if self.passed is None:
            return f"{self.name} was not measured: {' '.join(map(str, self.failed))}"
        head = f"Try {self.number}: {self.name}, drawn and measured anew at the confidence level {1 - self.error:g}"
        if self.passed:
            return f"{head}, is within every tested limit."
        return f"{head}, failed: {' '.join(map(str, self.failed))}"


class TryFacts(TypedDict):
    """A try as the method note and the manifest of the study list it."""

    candidate: str
    confidence_level: float
    passed: bool | None


def describe_try(one: Try, name: str = "") -> TryFacts:
    """Return a try for a list of tries; name : of the candidate in its public form."""
    return {"candidate": name or one.name, "confidence_level": round(1 - one.error, 9), "passed": one.passed}


def release_draw(candidate: Candidate, earlier: int = 0) -> Candidate:
    """Return the new draw that a release makes of a candidate; earlier : how many releases have tried it before."""
    number = MAX_DRAWS_OF_CANDIDATE * candidate.replicate + earlier
    return Candidate(candidate.method, FIRST_RELEASE_DRAW + number)


def studied_replicate(replicate: int) -> int:
    """Return the replicate in the study of a draw that a release made; a draw of the study is its own.

    >>> from sdcmap import Identity
    >>> studied_replicate(release_draw(Candidate(Identity(), 7), 2).replicate), studied_replicate(7)
    (7, 7)
    """
    is_release = replicate >= FIRST_RELEASE_DRAW
    return (replicate - FIRST_RELEASE_DRAW) // MAX_DRAWS_OF_CANDIDATE if is_release else replicate


def run_tries(candidates: Sequence[C], errors: Sequence[float], attempt: Callable[[C, float], bool | None]) -> C | None:
    """Try candidates in their order, each with the next error probability, and return the first that passes.

    attempt : measures a candidate anew and returns whether its upper limits at the confidence level 1 - error are within
    every tested limit; None where it was not measured, so that the next candidate has this error.
    """
    left = list(errors)
    for candidate in candidates:
        if not left:
            break
        passed = attempt(candidate, left[0])
        if passed:
            return candidate
        if passed is not None:
            del left[0]
    return None


def errors_left(policy: ReleasePolicy, spent: int, *, is_overridden: bool = False) -> tuple[float, ...]:
    """Return the error probabilities of the tries that are left after so many; an override allows one more."""
    left = policy.try_errors[spent:]
    return left or ((policy.try_errors[-1],) if is_overridden else ())


def check_tries(policy: ReleasePolicy, spent: int, profile: str, *, is_repeated: bool = False) -> Check:
    """Check that a try is left for these data and this profile; a repeated release spends nothing."""
    allowed, total = len(policy.try_errors), format_percent(sum(policy.try_errors))
    about = f"of these data for the profile {profile}"
    if is_repeated:
        return Check(
            "tries",
            True,
            "This release was tried before. It is repeated with the same draws and spends no further try.",
        )
    if spent < allowed:
        made = f"{spent} of {allowed} tries {about} were made before"
        return Check("tries", True, f"{made}. The procedure writes a file above a limit in at most {total} of studies.")
    problem = f"All {allowed} tries {about} have been made. Another seed, plan or rule does not renew them"
    return Check("tries", False, f"{problem}: a file above a limit would be written in more than {total} of studies.")


def checks_of_all(before: Sequence[Check], tries: Sequence[Try]) -> list[Check]:
    """Return the checks before any draw and those of all tries, of which none passed."""
    if len(tries) == 1:
        return [*before, *tries[0].checks]
    every = [replace(check, reason=f"{one.name}: {check.reason}") for one in tries for check in one.checks]
    return [*before, *every]


@dataclass(frozen=True)
class Procedure:
    """The procedure of one release: which candidates are tried, which draw of each, and with which errors.

    draws : the new draw of each candidate. errors : of the tries, in their order. spent : how many tries were made before
    by other procedures for these data and this profile. entry : the row in the ledger that records this release, where it
    has one. made : the errors of the tries of this very procedure that were made before, by the place of the candidate:
    they give the same figures again. used : the draws of other procedures, by the digest of the method and the number.
    """

    names: tuple[str, ...]
    draws: tuple[Candidate, ...]
    errors: tuple[float, ...]
    spent: int
    entry: ProcedureEntry | None
    made: Mapping[int, float]
    used: frozenset[tuple[str, int]] = frozenset()

    def draw_after(self, draw: Candidate) -> Candidate:
        """Return the next draw of a candidate, for a draw that could not be made; no other procedure has it."""
        numbers = range(draw.replicate + 1, draw.replicate + MAX_DRAWS_OF_CANDIDATE)
        return next(
            Candidate(draw.method, number) for number in numbers if (draw.method.digest, number) not in self.used
        )


def plan_procedure(
    candidates: Sequence[Candidate], names: Sequence[str], ledgers: Sequence[Ledger], data: str, profile: str,
    identity: str, policy: ReleasePolicy, *, records: Microdata | None = None, is_overridden: bool = False,
) -> Procedure:  # fmt: skip
    """Return the procedure of a release from what the ledgers know about these data and this profile.

    ledgers : the one that records the release first. data, identity : digests of the data, and of all that determines
    the figures of the tries. records : with them, tries of nearly the same records count too. is_overridden : whether one
    more try is allowed than the policy has.
    """
    known = [(one.fingerprint(identity), entry) for one in ledgers for entry in one.procedures(data, records)]
    own = [entry for mine, entry in known if entry.identity == mine]
    others = [entry for mine, entry in known if entry.identity != mine]
    spent = sum(len(entry.errors) for entry in others if entry.profile == profile)
    kept = candidates[: len(policy.try_errors)]
    used = frozenset(draw for entry in others for draw in entry.draws)
    if own:
        draws = [Candidate(c.method, number) for c, (_, number) in zip(kept, own[0].draws, strict=False)]
        made = own[0].errors
    else:
        draws, made = [_unused_draw(candidate, used) for candidate in kept], {}
    left = errors_left(policy, spent + len(made), is_overridden=is_overridden and not made)
    recorded = own[0] if own and ledgers[0].fingerprint(identity) == own[0].identity else None
    return Procedure(tuple(names[: len(draws)]), tuple(draws), (*made.values(), *left), spent, recorded, made, used)


def _unused_draw(candidate: Candidate, used: Collection[tuple[str, int]]) -> Candidate:
    """Return the first release draw of a candidate that no earlier procedure has."""
    draws = (release_draw(candidate, earlier) for earlier in range(MAX_DRAWS_OF_CANDIDATE))
    return next(draw for draw in draws if (draw.method.digest, draw.replicate) not in used)


def digest_without_roles(data: Microdata) -> str:
    """Return the digest of data whatever their roles are, so that another role does not make other data of them."""
    neutral = [
        replace(v, role=v.role if v.role in NEVER_RELEASED else "other", known_by="") for v in data.schema.variables
    ]
    return replace(data, schema=replace(data.schema, variables=tuple(neutral))).digest
