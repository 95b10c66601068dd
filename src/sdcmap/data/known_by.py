"""Who else could know the value of a column: a register, an acquaintance, or only the respondent.

Every column counts as known to others unless the user states, with a reason, that only the respondent knows it. This is
refused for keys, amounts, dates and places: a tax office, a landlord or a colleague may know them.

In Python it is a mapping, {"q1": "respondent only: an opinion, asked once"}; in a plan and on the command line a text,
"q1,q2=respondent only: an opinion, asked once".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sdcmap.data.identifiers import NAMES, has_words
from sdcmap.data.schema import RESPONDENT_ONLY, Variable
from sdcmap.errors import SchemaError, did_you_mean

KNOWERS = ("register", "acquaintance", RESPONDENT_ONLY)
Stated = str | Sequence[str] | Mapping[str, str]
DATES = ("Date", "Datetime", "Time", "Duration")
GEOGRAPHY = (
    *(pattern for letter, _, pattern in NAMES if letter == "B"),
    r"region\w*|state|province|provincia|canton|kanton|bundesland|nuts\d?|msa|metro\w*|country|area|geo\w*|place|ward|parish",
)


def parse_known_by(stated: Stated) -> dict[str, str]:
    """Return {column: who could know it} from a mapping or from texts.

    >>> parse_known_by("q1, q2=respondent only: an opinion")
    {'q1': 'respondent only: an opinion', 'q2': 'respondent only: an opinion'}
    """
    if isinstance(stated, Mapping):
        return {str(name): str(words) for name, words in stated.items()}
    texts = [stated] if isinstance(stated, str) else stated
    pairs = [text.partition("=") for text in texts if text]
    return {name.strip(): words.strip() for names, _, words in pairs for name in names.split(",") if name.strip()}


def with_known_by(variables: Sequence[Variable], stated: Mapping[str, str]) -> tuple[Variable, ...]:
    """Return the variables with `known_by` set; SchemaError lists every statement that is not allowed."""
    names = [variable.name for variable in variables]
    problems = [f"no column {name!r}.{did_you_mean(name, names)}" for name in stated if name not in names]
    completed = tuple(replace(v, known_by=stated[v.name]) if v.name in stated else v for v in variables)
    problems += [problem for variable in completed if (problem := _problem(variable))]
    if problems:
        raise SchemaError(" ".join(problems))
    return completed


def _problem(variable: Variable) -> str:
    """Return why the statement is not allowed for this column; empty if it is."""
    knower, _, reason = (part.strip() for part in variable.known_by.partition(":"))
    if not variable.known_by or knower in KNOWERS[:2]:
        return ""
    name = repr(variable.name)
    if knower != RESPONDENT_ONLY:
        return f"known_by of {name} must be one of {', '.join(KNOWERS)}.{did_you_mean(knower, KNOWERS)}"
    if not reason:
        return f"known_by of {name} needs a reason: write '{RESPONDENT_ONLY}: why others cannot know it'."
    what = _knowable_by_nature(variable)
    return f"{name} cannot be '{RESPONDENT_ONLY}': it is {what}, which others may know." if what else ""


def _knowable_by_nature(variable: Variable) -> str:
    """Return what makes a column always knowable to others, such as "a date"; empty if nothing does."""
    dates = next(pattern for letter, _, pattern in NAMES if letter == "C")
    if variable.role == "key":
        return "a key"
    if variable.storage in DATES or has_words(dates, variable.name, variable.label):
        return "a date"
    if any(has_words(pattern, variable.name, variable.label) for pattern in GEOGRAPHY):
        return "a place"
    return "an amount" if variable.kind == "numeric" else ""
