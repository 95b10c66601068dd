"""The written file as it is scored: columns that became categories are scored as they were made."""

from __future__ import annotations

import pytest

import sdcmap as sm
from samples import SEED
from sdcmap.bundle.prepared_file import as_written, prepare
from sdcmap.bundle.round_trip import align_with_original
from sdcmap.core.streams import Stream
from sdcmap.study.plan import Candidate

METHODS = {
    "ages in intervals": sm.Recode(on="age", width=10),
    "amounts in intervals": sm.Recode(on="income", bins=5),
    "some of the rows": sm.Chain([sm.methods.Sample(rate=0.5), sm.Recode(on=["age", "income"], bins=5)]),
}


@pytest.mark.parametrize("kind", METHODS)
def test_recoded_columns_are_scored_as_in_study(persons: sm.Microdata, kind: str) -> None:
    """Ages in intervals were scored as missing, and amounts in intervals by the numbers of their categories: `ExactMatch`
    was 0 where everybody was found."""
    method = METHODS[kind]
    stream = Candidate(method).stream(SEED)
    masked = as_written(persons, method, method.apply(persons, stream))
    prepared = prepare(persons, method, masked, stream)
    back = align_with_original(persons, prepared.data, prepared)
    known = [name for name in persons.knowable if name != "rent"]
    for measure in (sm.risk.ExactMatch(on=known), sm.risk.ClosestRecord(on=known), sm.risk.SpecialUniques()):
        made, scored = (measure.score(persons, file, Stream.of_seed(1).rng()) for file in (masked, back))
        assert scored.value == pytest.approx(made.value), type(measure).__name__
    assert sm.risk.ExactMatch(on=known).score(persons, back, Stream.of_seed(1).rng()).value > 0.1


def test_a_category_is_read_by_its_label_after_noise(persons: sm.Microdata) -> None:
    """An attacker who knows an age looks its interval up, whatever came before; this once failed after noise."""
    method = sm.Chain([sm.PRAM(on="age", stay=0.9), sm.Recode(on="age", width=10)])
    masked = method.apply(persons, Candidate(method).stream(SEED))
    known = ["age", "sex", "region", "psu", "rent"]
    assert sm.risk.ExactMatch(on=known).score(persons, masked, Stream.of_seed(1).rng()).value > 0.8
