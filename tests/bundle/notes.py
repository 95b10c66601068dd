"""The example that a release's note prints."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path


def run_example(folder: Path) -> float:
    """The example of the note, run as a data user would."""
    code = re.search(r"```python\n(.*?)```", (folder / "note.md").read_text(), re.DOTALL)
    assert code is not None and code[1] == json.loads((folder / "note.json").read_text())["example"]
    done = subprocess.run([sys.executable, "-c", code[1]], cwd=folder, capture_output=True, text=True, check=True)
    return float(done.stdout)
