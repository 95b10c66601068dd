"""Run the command line in this process, with the same output and exit codes, without starting Python."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from unittest.mock import patch

from sdcmap.cli import main


@dataclass(frozen=True)
class Said:
    """The output of a command, and its exit code."""

    code: int
    stdout: str
    stderr: str


def sdcmap(*arguments: object, code: int = 0) -> Said:
    """Run `sdcmap` with these arguments; it must end with this exit code and without a traceback."""
    out, err = io.StringIO(), io.StringIO()
    with patch.object(sys, "argv", ["sdcmap", *map(str, arguments)]), redirect_stdout(out), redirect_stderr(err):
        try:
            main()
            ended = 0
        except SystemExit as end:
            ended = end.code if isinstance(end.code, int) else 0
    said = Said(ended, out.getvalue(), err.getvalue())
    assert said.code == code, said.stderr + said.stdout
    assert "Traceback" not in said.stderr
    return said
