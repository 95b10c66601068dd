"""The errors of sdcmap.

    SdcmapError
    |- SchemaError      no column 'agee'. Did you mean 'age'?
    |- PlanError        every problem of a plan at once: "Swap.rate must be in (0, 0.5]. Got 5."
    |- Infeasible       this candidate cannot be made; the reason is stored and the sweep goes on
    |- Undefined        this measure has no value here (constant column, no origin); the reason is stored
    |- StudyMismatch    the folder belongs to other data or another seed (a plan may grow)
    |- StudyDamaged     the folder cannot be read as a study
    |- Refused          a release would be unsafe: identifier present, risk above its limit, weak seed
    |- MissingExtra     "reading a pandas frame needs pyarrow: pip install pyarrow"
    |- ContractBroken   a method or measure class has a bug: "MyRisk returned float, not an Estimate"

Every message says what is wrong, where, and what to do. It never contains a data value.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Protocol

MAX_PROBLEMS_SHOWN = 100  # in one error; a grid with one mistake would print thousands
# A hint compares a name with each known one, which takes time that grows with both.
MAX_NAMES_COMPARED = 1_000
MAX_NAME_CHARACTERS = 100


def quote_text(text: str) -> str:
    """Return a text that a user wrote in quotes, cut to a readable length."""
    return repr(text if len(text) <= MAX_NAME_CHARACTERS else f"{text[:MAX_NAME_CHARACTERS]}...")


class StudyChanged(UserWarning):
    """Numbers of a study were computed by other code: says which are kept and which are computed again."""


class OtherOrder(UserWarning):
    """Two files that are compared row by row agree in no column, so their rows may be in different orders."""


class SdcmapError(Exception):
    """The base of all errors that sdcmap raises on purpose. Its text is one clear sentence."""


class SchemaError(SdcmapError):
    """The data do not have the required columns, kinds or values."""


class PlanError(SdcmapError):
    """One or more problems of a plan or of a parameter, all of them in `problems`."""

    def __init__(self, problems: str | Sequence[str]) -> None:
        every = (problems,) if isinstance(problems, str) else tuple(problems)
        more = len(every) - MAX_PROBLEMS_SHOWN
        self.problems = (*every[:MAX_PROBLEMS_SHOWN], f"And {more:,} more problems.") if more > 0 else every
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
    """The part of a failed check that a refusal prints. `sdcmap.bundle.Check` implements it."""

    @property
    def name(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def remedy(self) -> str: ...
    @property
    def is_measured(self) -> bool: ...


class Refused(SdcmapError):  # noqa: N818
    """A release that would be unsafe. `checks` contains each failed check."""

    def __init__(self, checks: Sequence[FailedCheck]) -> None:
        self.checks = tuple(checks)
        super().__init__("not released: " + " ".join(map(str, self.checks)))

    def __reduce__(self) -> tuple[type[Refused], tuple[tuple[FailedCheck, ...]]]:
        return Refused, (self.checks,)


class MissingExtra(SdcmapError):  # noqa: N818
    """An optional package is missing. The message names it."""


class ContractBroken(SdcmapError):  # noqa: N818
    """A method or measure does not do what its base class promises: a bug in its code, not in the data."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint such as ` Did you mean 'age'?`, or an empty text when no known name is similar.

    >>> did_you_mean("agee", ["age", "sex"])
    " Did you mean 'age'?"
    """
    names = list(islice(known, MAX_NAMES_COMPARED))
    if len(name) > MAX_NAME_CHARACTERS:
        return ""
    similar = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if not similar:
        # "AGE" and "age" share no character for difflib
        similar = [known_name for known_name in names if known_name.lower() == name.lower()]
    return f" Did you mean {similar[0]!r}?" if similar else ""
