"""The benchmark can be run: every module of jobs is found and loaded, every job has three sizes for its growth, and what
other benchmarks take from sdcmap is there."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parents[1] / "bench"
LIST = "import run; [print(name, len(sizes), sep='|') for _, name, sizes, _ in run.jobs()]"


def test_every_job_is_found_and_has_three_sizes() -> None:
    done = subprocess.run([sys.executable, "-c", LIST], cwd=BENCH, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    jobs = [line.split("|") for line in done.stdout.splitlines()]
    assert len({name for name, _ in jobs}) == len(jobs) > 40
    assert {sizes for _, sizes in jobs} == {"3"}


def test_every_name_that_a_benchmark_takes_is_there() -> None:
    """Benchmarks for other machines are not run here, so their imports are checked in the source."""
    files = (*BENCH.glob("*.py"), *BENCH.glob("gpu/*.py"), *BENCH.glob("targets/*.py"))
    taken = [(path.name, *names) for path in files for names in imported(path)]
    assert len(taken) > 40
    assert [(file, workdir, name) for file, workdir, name in taken if not there(workdir, name)] == []


def imported(path: Path) -> list[tuple[str, str]]:
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    ours = [node for node in nodes if (node.module or "").split(".")[0] == "sdcmap"]
    return [(node.module or "", alias.name) for node in ours for alias in node.names]


def there(workdir: str, name: str) -> bool:
    try:
        return hasattr(importlib.import_module(workdir), name) or bool(importlib.import_module(f"{workdir}.{name}"))
    except ModuleNotFoundError:
        return False
