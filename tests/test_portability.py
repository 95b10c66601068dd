"""Portability: no module needs Unix-only modules, and a small study runs without them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

UNIX_ALONE = ("fcntl", "grp", "pwd", "resource", "termios")
ELSEWHERE = f"""
import os, sys
for name in {UNIX_ALONE}:
    sys.modules[name] = None
for name in ("sched_getaffinity", "process_cpu_count", "fork", "getuid", "geteuid", "O_NOFOLLOW", "O_DIRECTORY"):
    if hasattr(os, name):
        delattr(os, name)
"""
IMPORT_ALL = """
import importlib, pkgutil, sdcmap
for module in pkgutil.walk_packages(sdcmap.__path__, "sdcmap."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ImportError as error:
            print(module.name, error)
"""
SMALL_STUDY = """
import warnings; warnings.simplefilter("ignore")  # without flock, filelock says that it uses another way
import polars as pl, sdcmap as sm
people = sm.read(pl.DataFrame({"age": [1, 2, 3, 1] * 5, "sex": ["f", "m"] * 10}), keys="all")
plan = sm.Plan([sm.Swap(on="age", rate=0.2)], [sm.SmallCells(), sm.Hellinger()], seed=7)
scores = sm.sweep(people, plan, sys.argv[1], workers=1, progress=lambda done, count: None)
print(scores.column(plan.measures[0].text).height)
"""


def elsewhere(script: str, *words: str) -> str:
    """Return the output of a script in which the modules of UNIX_ALONE cannot be imported."""
    done = subprocess.run([sys.executable, "-c", ELSEWHERE + script, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_modules_import_without_unix_only_modules() -> None:
    assert elsewhere(IMPORT_ALL) == ""


def test_sweep_runs_without_unix_only_modules(tmp_path: Path) -> None:
    assert elsewhere(SMALL_STUDY, str(tmp_path / "study")) == "2\n"
