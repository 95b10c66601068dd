"""The errors of sdcmap.

    SdcmapError
    |- SchemaError      no column 'agee'. Did you mean 'age'?
    |- PlanError        every problem of a plan at once: "Swap.rate must be in (0, 0.5]. Got 5."
    |- Infeasible       this candidate cannot be made; recorded, the sweep goes on
    |- Undefined        this measure has no value here (constant column, no origin); recorded with the reason
    |- StudyMismatch    the folder belongs to other data or another seed (a plan may grow)
    |- StudyDamaged     the folder cannot be read as a study
    |- Refused          a release that would be unsafe: identifier present, risk over the line, weak seed
    |- MissingExtra     "a pandas frame needs pyarrow: pip install pyarrow"
    |- ContractBroken   a method or measure class has a fault: "MyRisk returned float, not an Estimate"

Every message says what is wrong, where, what is allowed, what came and what to do. It never holds a data value.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Protocol

MAX_PROBLEMS_SHOWN = 100  # that are told at once
MAX_NAMES_COMPARED, MAX_NAME_CHARACTERS = 1_000, 100  # among which the one that was meant is looked for


def quote_text(text: str) -> str:
    """A text that somebody wrote, quoted, at a length that can be read."""
    return repr(text if len(text) <= MAX_NAME_CHARACTERS else f"{text[:MAX_NAME_CHARACTERS]}...")


class StudyChanged(UserWarning):
    """Numbers of a study were made by other code than today's: what is kept, and what is computed again."""


class OtherOrder(UserWarning):
    """Two files that are compared row by row agree on no column: their rows may be in another order."""


class SdcmapError(Exception):
    """The root of all errors that sdcmap raises on purpose; its text is one clear sentence."""


class SchemaError(SdcmapError):
    """The data do not have the columns, kinds or values that were asked for."""


class PlanError(SdcmapError):
    """One or more problems of a plan or of a parameter, all at once in `problems`."""

    def __init__(self, problems: str | Sequence[str]) -> None:
        listed = (problems,) if isinstance(problems, str) else tuple(problems)
        more = len(listed) - MAX_PROBLEMS_SHOWN
        self.problems = (*listed[:MAX_PROBLEMS_SHOWN], f"And {more:,} more problems.") if more > 0 else listed
        super().__init__("\n".join(self.problems))

    def __reduce__(self) -> tuple[type[PlanError], tuple[tuple[str, ...]]]:
        return PlanError, (self.problems,)


class Infeasible(SdcmapError):  # noqa: N818 - the field's own word
    """This candidate cannot be made from these data."""


class Undefined(SdcmapError):  # noqa: N818
    """This measure has no value here."""


class StudyMismatch(SdcmapError):  # noqa: N818
    """The study folder belongs to other data or another seed."""


class StudyDamaged(SdcmapError):  # noqa: N818
    """The study folder cannot be read as a study."""


class FailedCheck(Protocol):
    """What a refusal tells of a check that failed; `sdcmap.bundle.Check` is ours."""

    @property
    def name(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def remedy(self) -> str: ...
    @property
    def is_measured(self) -> bool: ...


class Refused(SdcmapError):  # noqa: N818
    """A release that would be unsafe; `checks` holds each failed check."""

    def __init__(self, checks: Sequence[FailedCheck]) -> None:
        self.checks = tuple(checks)
        super().__init__("not released: " + "; ".join(map(str, self.checks)))

    def __reduce__(self) -> tuple[type[Refused], tuple[tuple[FailedCheck, ...]]]:
        return Refused, (self.checks,)


class MissingExtra(SdcmapError):  # noqa: N818
    """An optional package is needed; the message says which."""


class ContractBroken(SdcmapError):  # noqa: N818
    """A method or measure does not do what its base class promises: an error in its code, not in the data."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint such as ` Did you mean 'age'?`, or nothing when no known name is near.

    >>> did_you_mean("agee", ["age", "sex"])
    " Did you mean 'age'?"
    """
    names = list(islice(known, MAX_NAMES_COMPARED))
    if len(name) > MAX_NAME_CHARACTERS:
        return ""
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if not near:
        near = [known_name for known_name in names if known_name.lower() == name.lower()]
    return f" Did you mean {near[0]!r}?" if near else ""
