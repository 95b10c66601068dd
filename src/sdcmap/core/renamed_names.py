"""Names that earlier versions used in plans: an error names the new one, so that an old plan is quick to correct."""

from __future__ import annotations

from collections.abc import Iterable

from sdcmap.errors import did_you_mean

# Old name -> new name, of classes, of fields, and of words that a field takes. There are no aliases: a plan states
# what is computed, and the name of a class is part of its digest.
RENAMED = {
    "Synthesise": "Synthesize",
    "RandomisedResponse": "RandomizedResponse",
    "centres": "centers",
    "learnt": "learned",
    "neighbourhood": "neighborhood",
    "makings": "refits",
    "standardised": "standardized",
    "found": "reidentification",
    "inferred": "inference",
}


def suggest_name(name: str, known: Iterable[str]) -> str:
    """Return a hint such as ` Did you mean 'refits'?`: the new name of a renamed one, else the nearest known name.

    >>> suggest_name("makings", ["best", "rows", "refits"]), suggest_name("ros", ["best", "rows", "refits"])
    (" Did you mean 'refits'?", " Did you mean 'rows'?")
    """
    names = list(known)
    renamed = RENAMED.get(name)
    return f" Did you mean {renamed!r}?" if renamed in names else did_you_mean(name, names)
