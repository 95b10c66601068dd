"""Who could know the value of a column: a register, an acquaintance, or the respondent alone.

Every column counts as knowable unless somebody states, with a reason in words, that only the respondent knows it. Keys,
amounts, dates and places are never that: a tax office, a landlord or a colleague knows them.

In Python a mapping, {"q1": "respondent only: an opinion, asked once"}; in a plan and on the command line texts,
"q1,q2=respondent only: an opinion, asked once".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sdcmap.data.identifiers import NAMES, says
from sdcmap.data.schema import RESPONDENT_ONLY, Variable
from sdcmap.errors import SchemaError, did_you_mean

KNOWERS = ("register", "acquaintance", RESPONDENT_ONLY)
Stated = str | Sequence[str] | Mapping[str, str]
DATES = ("Date", "Datetime", "Time", "Duration")
GEOGRAPHY = (
    *(pattern for letter, _, pattern in NAMES if letter == "B"),
    r"region\w*|state|province|provincia|canton|kanton|bundesland|nuts\d?|msa|metro\w*|country|area|geo\w*|place|ward|parish",
)


def known_by_of(stated: Stated) -> dict[str, str]:
    """Column -> who could know it, from either form.

    >>> known_by_of("q1, q2=respondent only: an opinion")
    {'q1': 'respondent only: an opinion', 'q2': 'respondent only: an opinion'}
    """
    if isinstance(stated, Mapping):
        return {str(name): str(words) for name, words in stated.items()}
    texts = [stated] if isinstance(stated, str) else stated
    pairs = [text.partition("=") for text in texts if text]
    return {name.strip(): words.strip() for names, _, words in pairs for name in names.split(",") if name.strip()}


def with_known_by(variables: Sequence[Variable], stated: Mapping[str, str]) -> tuple[Variable, ...]:
    """The variables with who could know them; SchemaError with everything that cannot be."""
    names = [variable.name for variable in variables]
    problems = [f"no column {name!r}.{did_you_mean(name, names)}" for name in stated if name not in names]
    made = tuple(replace(v, known_by=stated[v.name]) if v.name in stated else v for v in variables)
    problems += [problem for variable in made if (problem := _problem(variable))]
    if problems:
        raise SchemaError(" ".join(problems))
    return made


def _problem(variable: Variable) -> str:
    """Why nobody can state this of the column; empty where he can."""
    knower, _, reason = (part.strip() for part in variable.known_by.partition(":"))
    if not variable.known_by or knower in KNOWERS[:2]:
        return ""
    name = repr(variable.name)
    if knower != RESPONDENT_ONLY:
        return f"known_by of {name} must be one of {', '.join(KNOWERS)}.{did_you_mean(knower, KNOWERS)}"
    if not reason:
        return f"known_by of {name} needs a reason in words: '{RESPONDENT_ONLY}: why nobody else could know it'."
    what = _knowable_by_nature(variable)
    return f"{name} cannot be known by the {RESPONDENT_ONLY}: it is {what}, which others know." if what else ""


def _knowable_by_nature(variable: Variable) -> str:
    """What the column is, where others always may know it."""
    dates = next(pattern for letter, _, pattern in NAMES if letter == "C")
    if variable.role == "key":
        return "a key"
    if variable.storage in DATES or says(dates, variable.name, variable.label):
        return "a date"
    if any(says(pattern, variable.name, variable.label) for pattern in GEOGRAPHY):
        return "a place"
    return "an amount" if variable.kind == "numeric" else ""
