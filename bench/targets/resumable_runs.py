"""What the scripts of the targets share: the command line, runs in processes, results that can be continued, and bands.

    python bench/targets/NAME.py --out FILE.jsonl [--jobs N] [--runs K] [--part I/N] [--minutes M]

A script has numbered runs, independent of each other, each with a seed of its own. A finished run is appended to the
output as one line of JSON. A started output is continued: only missing runs, and those that ended with an error, are made.
Runs are made in processes of one thread, each bound to one core, so that the code under test starts no workers of its own.
After `--minutes` the runs that have not finished are given up. At the end each figure is printed with its band, its target
and whether the target is met. The exit code is 1 if one is not.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

BAND_LEVEL = 0.95  # of the intervals that are printed beside the figures
BAND_DRAWS = 1_000  # of a bootstrap
MAX_WAIT = 3_600.0  # seconds for which the operating system is asked to wait at once
FIRST_SEED = 37_000_000  # run number i has the seed FIRST_SEED + i
ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "POLARS_MAX_THREADS")
Facts = dict[str, Any]
Band = tuple[float, float]


@dataclass(frozen=True)
class Figure:
    """One observed figure with its band, the largest value that the target allows, and from how many runs it is."""

    name: str
    value: float
    band: Band
    limit: float
    runs: int
    note: str = ""

    @property
    def is_met(self) -> bool:
        return self.value <= self.limit

    def __str__(self) -> str:
        low, high = self.band
        verdict = "met" if self.is_met else "MISSED"
        if self.is_met != (high <= self.limit) and low <= self.limit <= high:
            verdict += ", but the band contains the target"
        note = f" ({self.note})" if self.note else ""
        return (
            f"{self.name}: {self.value:.4g} [{low:.4g}, {high:.4g}], target at most {self.limit:.4g}: {verdict}; "
            f"{self.runs:,} runs{note}"
        )


@dataclass(frozen=True)
class Target:
    """What a script measures.

    run : makes one run from its number and its seed and returns what it observed; a function of a module.
    figures : returns the figures from the lines of all finished runs. runs : how many runs the target needs.
    """

    description: str
    run: Callable[[int, int], Facts]
    figures: Callable[[Sequence[Facts]], Iterable[Figure]]
    runs: int


def plan_seed(seed: int) -> int:
    """Return the 256-bit seed of a plan that belongs to the seed of a run."""
    return int.from_bytes(hashlib.sha256(str(seed).encode()).digest(), "big")


# ---- bands ----------------------------------------------------------------------------------------------------
def binomial_band(hits: int, runs: int) -> Band:
    """Return the interval of a share by Clopper and Pearson (1934).

    >>> [round(end, 4) for end in binomial_band(0, 200)]
    [0.0, 0.0183]
    """
    from scipy.special import betaincinv

    tail = (1 - BAND_LEVEL) / 2
    low = 0.0 if hits == 0 else float(betaincinv(hits, runs - hits + 1, tail))
    high = 1.0 if hits == runs else float(betaincinv(hits + 1, runs - hits, 1 - tail))
    return low, high


def share_figure(name: str, hits: int, runs: int, limit: float, note: str = "") -> Figure:
    """Return the figure of a share of runs, with its interval by Clopper and Pearson."""
    counted = f"{hits} of {runs}"
    return Figure(name, hits / runs, binomial_band(hits, runs), limit, runs, f"{counted}, {note}" if note else counted)


def bootstrap_band(statistic: Callable[..., float], *samples: np.ndarray) -> Band:
    """Return the percentile interval of a statistic of independent samples, by a bootstrap with a fixed seed."""
    rng = np.random.default_rng(FIRST_SEED)
    drawn = [statistic(*(rng.choice(x, len(x)) for x in samples)) for _ in range(BAND_DRAWS)]
    low, high = np.quantile(drawn, [(1 - BAND_LEVEL) / 2, (1 + BAND_LEVEL) / 2])
    return float(low), float(high)


def mean_band(values: Sequence[float]) -> Band:
    """Return the interval of a mean by Student's t; that of a single value is infinite."""
    from scipy.special import stdtrit

    if len(values) < 2:
        return -np.inf, np.inf
    half = stdtrit(len(values) - 1, (1 + BAND_LEVEL) / 2) * np.std(values, ddof=1) / np.sqrt(len(values))
    return float(np.mean(values) - half), float(np.mean(values) + half)


# ---- runs -----------------------------------------------------------------------------------------------------
def read_lines(path: Path) -> list[Facts]:
    """Return the finished runs of an output, without those that ended with an error."""
    if not path.exists():
        return []
    # A process that was killed while it wrote leaves an incomplete last line; that run is made again.
    text = path.read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
    return [line for line in lines if "error" not in line]


def missing_runs(out: Path, runs: int, part: tuple[int, int] = (1, 1)) -> list[int]:
    """Return the numbers of the runs of this part that the output lacks."""
    done, (index, parts) = {line["run"] for line in read_lines(out)}, part
    return [number for number in range(index - 1, runs, parts) if number not in done]


def make_run(run: Callable[[int, int], Facts], number: int) -> Facts:
    """Return the line of one run: what it observed, or its error."""
    seed, start, processor = FIRST_SEED + number, time.perf_counter(), time.process_time()
    try:
        facts = run(number, seed)
    except Exception:
        facts = {"error": traceback.format_exc()}
    spent = {"seconds": time.perf_counter() - start, "processor": time.process_time() - processor}
    return {"run": number, "seed": seed, **{name: round(value, 3) for name, value in spent.items()}, **facts}


def make_runs(target: Target, out: Path, numbers: Iterable[int], jobs: int, minutes: float) -> None:
    """Make runs in processes and append their lines to the output, until all are made or the time is over."""
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))  # for the processes that start from here
    deadline, todo = time.monotonic() + 60 * minutes, iter(numbers)
    context = multiprocessing.get_context("spawn")
    cores: Any = context.SimpleQueue()
    usable = sorted(os.sched_getaffinity(0))
    for worker in range(jobs):
        cores.put(usable[worker % len(usable)])
    pool = ProcessPoolExecutor(jobs, context, initializer=_bind_to_core, initargs=(cores,))
    running: set[Future[Facts]] = {pool.submit(make_run, target.run, number) for number in islice(todo, jobs)}
    _repair_last_line(out)
    with out.open("a", encoding="utf-8") as lines:
        while running and (left := deadline - time.monotonic()) > 0:
            done, running = wait(running, timeout=min(left, MAX_WAIT), return_when=FIRST_COMPLETED)
            running |= {pool.submit(make_run, target.run, number) for number in islice(todo, len(done))}
            for future in done:
                lines.write(f"{json.dumps(future.result())}\n")
            lines.flush()
    processes = multiprocessing.active_children()
    pool.shutdown(wait=not running, cancel_futures=True)
    if running:
        print(f"Time is over: {len(running)} runs were given up.", flush=True)
        for process in processes:
            process.terminate()


def _bind_to_core(cores: Any) -> None:
    os.sched_setaffinity(0, {cores.get()})


def _repair_last_line(out: Path) -> None:
    """End an incomplete last line, so that the next line is one of its own."""
    if out.exists():
        text = out.read_text(encoding="utf-8")
        out.write_text(text[: text.rfind("\n") + 1], encoding="utf-8")


# ---- the command line -----------------------------------------------------------------------------------------
def main(target: Target, arguments: Sequence[str] | None = None) -> int:
    """Run a script: make the missing runs and print the figures; return 1 if a target is not met."""
    parser = argparse.ArgumentParser(
        description=target.description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="results, one line of JSON for each run; continued")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument(
        "--runs", type=int, default=target.runs, help="runs in all, of all parts (default: %(default)s)"
    )
    parser.add_argument(
        "--part", type=_read_part, default=(1, 1), metavar="I/N", help="only every N-th run, from the I-th"
    )
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so many minutes")
    options = parser.parse_args(arguments)
    make_runs(target, options.out, missing_runs(options.out, options.runs, options.part), options.jobs, options.minutes)
    return print_figures(target, options.out, options.runs)


def _read_part(text: str) -> tuple[int, int]:
    index, parts = map(int, text.split("/"))
    if not 1 <= index <= parts:
        raise argparse.ArgumentTypeError("must be I/N with 1 <= I <= N, such as 2/4.")
    return index, parts


def print_figures(target: Target, out: Path, runs: int) -> int:
    """Print every figure; return 1 if a target is not met or a run ended with an error."""
    lines = sorted((line for line in read_lines(out) if line["run"] < runs), key=lambda line: int(line["run"]))
    failed = sorted({*missing_runs(out, runs)} & {*_failed_runs(out)})
    seconds, processor = ([line[name] for line in lines] or [0.0] for name in ("seconds", "processor"))
    each = f"{np.mean(seconds):.3g} s each, {np.mean(processor):.3g} s of the processor"
    print(f"{len(lines):,} of {runs:,} runs, {each} (largest {max(processor):.3g} s)")
    figures = list(target.figures(lines)) if lines else []
    for figure in figures:
        print(figure)
    if failed:
        print(f"{len(failed)} runs ended with an error, the first of them run {failed[0]}; see {out}.")
    return int(bool(failed) or not all(figure.is_met for figure in figures))


def _failed_runs(out: Path) -> Iterator[int]:
    lines = out.read_text(encoding="utf-8").splitlines() if out.exists() else []
    yield from (line["run"] for line in map(json.loads, lines) if "error" in line)
