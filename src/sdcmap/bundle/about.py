"""What a release is called, whose it is and when it was made: for the README, the citation and the codebook."""

from __future__ import annotations

import json
from dataclasses import dataclass

from sdcmap.bundle.note import Note

NOT_STATED = "owner not stated"


@dataclass(frozen=True)
class About:
    """The title of the data, as a person or a codebook states it; whose they are; the release's date, as 2026-02-27."""

    title: str
    owner: str
    date: str

    @property
    def year(self) -> str:
        return self.date[:4]


def citation(about: About, note: Note) -> str:
    """The text of CITATION.cff, in the Citation File Format 1.2.0; a text in YAML may be written as one in JSON."""
    words = {
        "cff-version": "1.2.0",
        "message": "Cite this file where you publish what you found in it.",
        "type": "dataset",
        "title": f"{about.title}, {note['profile']} file",
        "abstract": f"{note['for_whom']} It was masked: {note['method_name']}.",
        "date-released": about.date,
    }
    lines = [f"{key}: {json.dumps(text, ensure_ascii=False)}" for key, text in words.items()]
    name = json.dumps(about.owner or NOT_STATED, ensure_ascii=False)
    return "\n".join([*lines, "authors:", f"  - name: {name}", ""])


def cited(about: About, note: Note) -> str:
    """The same in one line for a list of references."""
    return f"{about.owner or NOT_STATED} ({about.year}). {about.title}, {note['profile']} file [data set]."
