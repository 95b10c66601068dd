"""The example that a release's note prints."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path


def example_of(folder: Path) -> str:
    """The lines of the note, which are those of its JSON."""
    lines = re.search(r"```python\n(.*?)```", (folder / "note.md").read_text(), re.DOTALL)
    assert lines is not None and lines[1] == json.loads((folder / "note.json").read_text())["example"]
    return lines[1]


def run_example(folder: Path) -> float:
    """What the example prints in the folder of the release."""
    printed = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        exec(example_of(folder), {})
    return float(printed.getvalue())
