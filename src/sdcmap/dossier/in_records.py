"""Utility in plain words: what each score of the chosen release costs, in records."""

from __future__ import annotations

from sdcmap.core.measure import Measure
from sdcmap.core.rule import Choice
from sdcmap.data.microdata import Microdata
from sdcmap.study.scores import Scores
from sdcmap.study.subsamples import as_subsample

DRAWS = 8  # subsamples of each share
SCORES = 4 * DRAWS  # of the whole file, about, that a reading takes
MOST_SECONDS = 60.0  # for one measure: a report does not keep people waiting


def in_records(data: Microdata, scores: Scores, choice: Choice, seed: int) -> list[tuple[str, str]]:
    """Each utility measure in words, and its score read as a share of the records thrown away, or why it is not."""
    measures = [measure for measure in scores.values.values() if measure.axis == "utility"]
    dear = {m.text: seconds for m in measures if (seconds := _price(m, data)) > MOST_SECONDS}
    cheap = [measure for measure in measures if measure.text not in dear]
    readings = as_subsample(data, scores, choice, cheap, draws=DRAWS, seed=seed)
    told = {reading.measure: reading.words for reading in readings}
    told |= {
        text: f"not read here: it would take about {dear[text] / 60:.0f} minutes (`as_subsample`)" for text in dear
    }
    return [(scores.words_of(measure.text), told[measure.text]) for measure in measures]


def _price(measure: Measure, data: Microdata) -> float:
    """Seconds that its reading takes, where the measure states its own; 0 where it does not."""
    return SCORES * (measure.seconds(data) or 0.0)
