"""Check the names of columns: a name must show what it is, and two names must not look the same."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Sequence

from sdcmap.errors import MAX_PROBLEMS_SHOWN, SchemaError

# Control characters, but for tabs and line breaks, and characters that change the direction of the text around them.
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# Cyrillic and Greek letters that most fonts draw like a Latin letter.
LOOK_ALIKES = str.maketrans(
    "\u0430\u0441\u0501\u0435\u04bb\u0456\u0458\u04cf\u043e\u0440\u051b\u0455\u051d\u0445\u0443"  # Cyrillic, small
    "\u0410\u0412\u0421\u0415\u041d\u0406\u0408\u041a\u041c\u041e\u0420\u0405\u0422\u0425\u0423"  # Cyrillic, capital
    "\u03bf\u03bd\u03f2\u03f3"  # Greek, small
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7",  # Greek, capital
    "acdehijlopqswxyABCEHIJKMOPSTXYovcjABEZHIKMNOPTYX",
)


def check_names(names: Sequence[str]) -> None:
    """Raise SchemaError for names with control characters, and for two names that look the same."""
    if hidden := [number for number, name in enumerate(names, 1) if CONTROL.search(name)]:
        what = "control characters or characters that change the direction of text in their names"
        raise SchemaError(f"columns with {what}: {_list(hidden)}. Rename them.")
    alike: dict[str, list[int]] = defaultdict(list)
    for number, name in enumerate(names, 1):
        alike[_appearance(name)].append(number)
    if pair := next((numbers for numbers in alike.values() if len(numbers) > 1), None):
        what = "look the same, but have other letters, blanks or invisible characters"
        raise SchemaError(f"the names of columns {_list(pair)} {what}. Rename them.")


def _list(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:MAX_PROBLEMS_SHOWN]))


def _appearance(name: str) -> str:
    """Return a text that is the same for names that look the same."""
    visible = "".join(letter for letter in unicodedata.normalize("NFC", name) if unicodedata.category(letter) != "Cf")
    return " ".join(visible.translate(LOOK_ALIKES).split())
