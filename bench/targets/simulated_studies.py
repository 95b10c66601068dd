"""Target: studies whose candidates are all just above a limit write a file in at most 65 of 1,000 cases.

The estimates are simulated; the comparison with the limits, the margins of a study, the order of the tries and the ledger
are those of a release. The limits are those of the profile for public use on the demo population. A measure with an error
has normal estimates, of the standard errors that were observed for a release of 800 people; the standard errors are
estimates too. Errors below 5 % of the sum of the tries allow 65 of 1,000.

Situations: "one limit": all candidates are just above the same limit, in any order, and far within all others. "different
limits": each is just above another limit. "all limits": each is just above all. "by the study": as "one limit", but the
study decides which candidates are eligible. "other seeds": as "one limit", and a refused release is prepared again with
two other seeds.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path

import numpy as np

import sdcmap as sm
from resumable_runs import Facts, Figure, Target, main, share_figure
from sdcmap.bundle.ledger import Ledger
from sdcmap.bundle.procedure import plan_procedure, run_tries
from sdcmap.core import Estimate
from sdcmap.core.limit import Limit
from sdcmap.core.release_policy import DEFAULT_POLICY
from sdcmap.study.plan import Candidate
from sdcmap.study.profiles import find_profile

STUDIES, MAX_SHARE = 1_000, 65 / 1_000
CANDIDATES, SEEDS = 8, 3
IN_MEMORY = "/dev/shm"  # the ledger commits every try; on a disk that takes longer than all else
ABOVE = 1e-9  # how far above a limit a risk is that is just above it
FAR_WITHIN = 6.0  # standard errors of a release
STUDY_FACTOR = 2.0  # the standard error of a study, in those of a release
RELEASE_ERRORS = {  # standard errors and degrees of freedom that were observed at release
    "AttributeInference": (0.008, None), "Reconstruction": (0.006, None), "ClosestRecord": (0.0065, None),
    "OutlierMembership": (0.02, 39), "ExtremeValues": (0.04, None), "SurestLinks": (0.03, 9),
    "WorstLinkage": (0.005, None),
}  # fmt: skip
UNSTATED_DF = 100  # of the standard errors that count as known
SITUATIONS = ("one limit", "different limits", "all limits", "by the study", "other seeds")


@cache
def limits_with_error() -> tuple[Limit, ...]:
    """Return the limits of the measures whose value at release has an error."""
    measures = find_profile("public-use").measures(sm.demo.population(800, seed=1)).limits
    return tuple(
        Limit(measure, limit) for measure, limit in measures.items() if type(measure).__name__ in RELEASE_ERRORS
    )


class SimulatedStudy:
    """A study whose candidates have known risks; all estimates of it are drawn."""

    def __init__(self, truth: np.ndarray, limits: Sequence[Limit], rng: np.random.Generator) -> None:
        self.truth, self.limits, self.rng = truth, limits, rng

    def estimate(self, candidate: int, factor: float = 1.0) -> Iterator[tuple[Limit, Estimate, float]]:
        """Yield each limit with an estimate and the standard error of a release; factor : of the error of the estimate."""
        for limit, risk in zip(self.limits, self.truth[candidate], strict=True):
            error, df = RELEASE_ERRORS[type(limit.measure).__name__]
            value = risk + factor * error * self.rng.standard_normal()
            se = error * math.sqrt(self.rng.chisquare(df or UNSTATED_DF) / (df or UNSTATED_DF))
            yield limit, Estimate(value=value, se=factor * se, df=df), se

    def is_eligible(self, candidate: int) -> bool:
        return all(
            limit.admits(one.eligibility_limit(release_se, DEFAULT_POLICY))
            for limit, one, release_se in self.estimate(candidate, STUDY_FACTOR)
        )

    def passes(self, candidate: int, error: float) -> bool:
        return all(limit.judge(one, 1 - error).status == "met" for limit, one, _ in self.estimate(candidate))


def true_risks(situation: str, limits: Sequence[Limit], number: int) -> np.ndarray:
    """Return the true risk of each candidate (row) by each limited measure (column)."""
    errors = np.array([RELEASE_ERRORS[type(limit.measure).__name__][0] for limit in limits])
    values = np.array([limit.value for limit in limits])
    above, within = values + ABOVE, values - FAR_WITHIN * errors
    at = np.full(CANDIDATES, number % len(limits))
    if situation == "different limits":
        at = np.arange(CANDIDATES) % len(limits)
    is_above = np.equal.outer(at, np.arange(len(limits))) | (situation == "all limits")
    return np.where(is_above, above, within)


def run(number: int, seed: int) -> Facts:
    """Return in which situations one simulated study writes a file."""
    return {name: writes_file(name, number, [seed, place]) for place, name in enumerate(SITUATIONS)}


def writes_file(situation: str, number: int, seed: Sequence[int]) -> bool:
    """Simulate one study and its release, with a ledger of its own."""
    rng, limits = np.random.default_rng(seed), limits_with_error()
    study = SimulatedStudy(true_risks(situation, limits, number), limits, rng)
    methods = [Candidate(sm.Noise(on=("wage",), variance=1.0 + k)) for k in range(CANDIDATES)]
    place = {candidate.method.digest: k for k, candidate in enumerate(methods)}
    memory = IN_MEMORY if Path(IN_MEMORY).is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as folder, Ledger.open_locked(Path(folder)) as ledger:
        for release in range(SEEDS if situation == "other seeds" else 1):
            order = [int(k) for k in rng.permutation(CANDIDATES)]
            if situation == "by the study":
                order = [k for k in order if study.is_eligible(k)]
            planned = plan_procedure(
                [methods[k] for k in order], [f"candidate {k}" for k in order], [ledger], "the data", "public-use",
                f"release {release}", DEFAULT_POLICY,
            )  # fmt: skip
            draws = [(draw.method.digest, draw.replicate) for draw in planned.draws]
            entry = ledger.record_procedure("the data", "public-use", f"release {release}", draws)
            attempt = partial(_try_candidate, study, ledger, entry.row, [place[digest] for digest, _ in draws])
            if run_tries(range(len(draws)), planned.errors, attempt) is not None:
                return True
    return False


def _try_candidate(
    study: SimulatedStudy, ledger: Ledger, row: int, order: Sequence[int], at: int, error: float
) -> bool:
    ledger.record_try(row, at, error)
    return study.passes(order[at], error)


def find_figures(lines: Sequence[Facts]) -> Iterator[Figure]:
    """Yield the share of studies that write a file, in each situation."""
    for name in SITUATIONS:
        yield share_figure(name, sum(line[name] for line in lines), len(lines), MAX_SHARE)


TARGET = Target(__doc__, run, find_figures, STUDIES)

if __name__ == "__main__":
    raise SystemExit(main(TARGET))
