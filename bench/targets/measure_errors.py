"""Target: a file whose true risk is above a limit is released in at most 18 of 200 studies, for each measure with an error.

The measures are real, and so are their errors. For each measure the risk of one method on one made file of 400 people is
measured anew hundreds of times, each time as a release does: a new draw of the method, new samples and new refits. The true
risk is the mean of all these measurements. The limit is set to this true risk, where a profile has a number of its own, so
that the method is just above it. Three consecutive measurements are the three tries of a study, and the comparison with the
limit at each level is that of a release. Errors below 5 % allow 18 of 200.

Only the measures with a standard error are judged: the others are exact for one file. One made file, the default synthetic
method and a masking method; measures that compare records have no value for the synthetic one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

import sdcmap as sm
from made_files import FILES, METHODS
from resumable_runs import Facts, Figure, Target, main, share_figure
from sdcmap.bundle.limit_checks import score_file
from sdcmap.bundle.procedure import run_tries
from sdcmap.core import Estimate, Measure, Stream
from sdcmap.core.estimate import SampledShare
from sdcmap.core.limit import Limit
from sdcmap.core.release_policy import DEFAULT_POLICY
from sdcmap.study.profiles import find_profile

ROWS, FILE_SEED = 400, 1
STUDIES, MAX_SHARE = 200, 18 / 200
TRIES = len(DEFAULT_POLICY.try_errors)
CASES = tuple(METHODS)
FILE = FILES[0]


def measures_of(data: sm.Microdata) -> list[Measure]:
    """Return the measures of the profile for public use that fit a file."""
    return list(find_profile("public-use").measures(data).limits)


def make_file(rows: int = ROWS) -> sm.Microdata:
    """Return the file on which everything is measured."""
    return FILE.read(FILE.frame(rows, np.random.default_rng(FILE_SEED)))


def run(number: int, seed: int, rows: int = ROWS) -> Facts:
    """Return the value, standard error, degrees of freedom and sample of each measure, as a release measures it."""
    data, name = make_file(rows), CASES[number % len(CASES)]
    method, stream = METHODS[name](data), Stream.of_seed(seed, "release")
    measures = measures_of(data)
    scored = score_file(measures, data, method.apply(data, stream), stream.child("scores"), method)
    outcomes = {measure.text: row.outcome for measure, row in zip(measures, scored, strict=True)}
    return {
        "method": name,
        "scores": {
            text: _facts_of(one) for text, one in outcomes.items() if isinstance(one, Estimate) and _has_error(one)
        },
    }


def _has_error(one: Estimate) -> bool:
    return one.se is not None or one.share is not None


def _facts_of(one: Estimate) -> Facts:
    share = None if one.share is None else [one.share.trials, one.share.comparisons, one.share.scale]
    return {"value": one.value, "se": one.se, "df": one.df, "share": share}


def _to_estimate(facts: Facts) -> Estimate:
    share = None if facts["share"] is None else SampledShare(**dict(zip(SampledShare.__slots__, facts["share"])))  # noqa: B905
    return Estimate(value=facts["value"], se=facts["se"], df=facts["df"], share=share)


def count_released(estimates: Sequence[Estimate], measure: Measure) -> tuple[int, int]:
    """Return how many studies release a file, and how many there are, if the limit is the mean of all estimates."""
    limit = Limit(measure, float(np.mean([one.value for one in estimates])))
    studies = [estimates[start : start + TRIES] for start in range(0, len(estimates) - TRIES + 1, TRIES)]

    def releases(tries: Sequence[Estimate]) -> bool:
        def attempt(one: Estimate, error: float) -> bool:
            return limit.judge(one, 1 - error).status == "met"

        return run_tries(tries, DEFAULT_POLICY.try_errors, attempt) is not None

    return sum(map(releases, studies)), len(studies)


def find_figures(lines: Sequence[Facts]) -> Iterator[Figure]:
    """Yield the share of studies that release a file above its limit, by method and measure."""
    measures = {measure.text: measure for measure in measures_of(make_file())}
    for method in CASES:
        own = [line["scores"] for line in lines if line["method"] == method]
        for text, measure in measures.items():
            estimates = [_to_estimate(scores[text]) for scores in own if text in scores]
            if len(estimates) < TRIES:
                continue
            released, studies = count_released(estimates, measure)
            values, errors = [one.value for one in estimates], [one.se or 0.0 for one in estimates]
            note = (
                f"mean {np.mean(values):.4g}, spread {np.std(values, ddof=1):.3g}, stated error {np.mean(errors):.3g}"
            )
            name = f"{method}, {type(measure).__name__}{' of ' + measure.secret if hasattr(measure, 'secret') else ''}"
            yield share_figure(name, released, studies, MAX_SHARE, note)


TARGET = Target(__doc__, run, find_figures, STUDIES * TRIES * len(CASES))

if __name__ == "__main__":
    raise SystemExit(main(TARGET))
