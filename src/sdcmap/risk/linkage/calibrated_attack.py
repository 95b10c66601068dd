"""The snooper who knows how far each column's values stray."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from sdcmap.core import Measure, Method, Microdata, Undefined
from sdcmap.risk.linkage import column_readings
from sdcmap.risk.linkage.attack import Attack
from sdcmap.risk.linkage.column_readings import Learned, Lesson, learn, learned_costs
from sdcmap.risk.linkage.cost_models import CostModel, links_of_cheapest, links_one_to_one
from sdcmap.risk.linkage.field_costs import block_costs
from sdcmap.risk.linkage.file_pair import LinkTable, Pair
from sdcmap.risk.linkage.stated_columns import redone

ROUNDS = 4  # of learning from the files alone
LINKED, LINKED_PAIRS = 2_000, 20_000_000  # records on which that is done, and pairs at most
FOLDS = 2


@dataclass(frozen=True)
class Calibrated(Attack):
    """The share of records found by a snooper who knows how reliable each column is.

    He holds records of people he can name. Of each column he has learned how far a released value strays from the true one,
    and how often it is exact: a column that was not masked must agree, a swapped one hardly counts, a suppressed value says
    nothing. He adds up this evidence over all columns, numbers and categories together, and takes the record it speaks
    for. What deterministic steps of a published method do (recoding, top coding, microaggregation), he does to his own
    records first, where that tells more.

    Parameters
    ----------
    method : how the file was made; a sweep and a release fill it in.
    learned : how he came to know the errors. "shadow": the method is published, and he runs it on his own records, with a
        seed of his own (needs no truth; serves chains and plug-ins). "files": from the two files alone: he links, learns
        from his links, and links again. "pairs": from true pairs, each half of the file attacked with what the other half
        taught: a yardstick that no snooper has, and no bound. "best": "shadow" where the method is known, else "pairs".
    one_to_one : each of his records takes one released record at most, and the evidence in sum is the largest.

    Formula: evidence = sum over columns of log P(values | true pair) / P(values | random pair), each learned apart,
    from up to 20,000 pairs: a number's by its distance, in bins of equal counts, in the reading (plain, logarithmic, rank,
    or after the deterministic steps) in which true pairs stand out most; a category's by P(released | known). Value:
    expected hits / released records; of t that tie the true one is taken with probability 1/t.
    Missing: missing before or after is a state of its own, whose evidence is learned too. Weights and households are not
    used. Undefined where records have no counterparts. Releasing nothing leaves a guess: 1/n.
    Reference: Fellegi, Sunter (1969), with levels of agreement learned from a shadow of the method.

    Examples
    --------
    >>> Calibrated(one_to_one=True).text
    'Calibrated(one_to_one=True)'
    """

    label: ClassVar[str] = "Re-identified, column errors known"
    description: ClassVar[str] = (
        "Share of records re-identified by an attacker who has learned how reliable each released column is."
    )

    revision: ClassVar[int] = 5  # 3: large files; 4: what a chain rounds; 5: ties alike on every machine

    method: Method | None = None
    learned: Literal["best", "shadow", "files", "pairs"] = "best"
    one_to_one: bool = False

    def for_informed_attacker(self, method: Method) -> Measure:
        return replace(self, method=method)

    def link(self, pair: Pair) -> LinkTable:
        return (links_one_to_one if self.one_to_one else links_of_cheapest)(pair, self.courses(pair))

    def courses(self, pair: Pair) -> list[CostModel]:
        """What he learned, for all released records at once or for those of each fold."""
        if self.learned == "shadow" and self.method is None:
            raise Undefined("nobody said how the file was made: score it in a sweep, or give Calibrated its method.")
        way = self.learned if self.learned != "best" else "pairs" if self.method is None else "shadow"
        return pair.remember((way, self.method), lambda: self._learned_by(way, pair))

    def _learned_by(self, way: str, pair: Pair) -> list[CostModel]:
        every = np.arange(len(pair.released))
        released = column_readings.taken(pair.released_file, pair.released_rows)
        known, place = pair.known_file.remember("own order", lambda: column_readings.in_own_order(pair.known_file))
        place = place[pair.known_rows]
        again = redone(known, self.method)
        if way == "shadow" and self.method is not None:
            learned = learn(known, released, pair.names, column_readings.shadow_of(known, self.method), again)
            return [CostModel(every, learned_costs(learned, place))]
        if way == "files":
            return [CostModel(every, learned_costs(self._by_itself(pair, known, released, again), place))]
        truth = np.where(pair.truth >= 0, place[pair.truth], -1)
        courses = []
        for fold in range(FOLDS):
            mine = pair.released_group % FOLDS == fold
            taught = np.flatnonzero(~mine & (truth >= 0))
            if len(taught) == 0:
                raise Undefined("there are no true pairs to learn from.")
            learned = learn(known, released, pair.names, Lesson(truth[taught], released, taught), again)
            courses.append(CostModel(np.flatnonzero(mine), learned_costs(learned, place)))
        return courses

    def _by_itself(self, pair: Pair, known: Microdata, released: Microdata, again: Microdata | None) -> Learned:
        """Learned from his own links: the likest records first, then by what the surer half of the links taught."""
        m = len(released)
        some = np.unique(np.linspace(0, m - 1, max(1, min(m, LINKED, LINKED_PAIRS // len(known)))).astype(np.int64))
        rows, places = column_readings.likest_records(known, released, pair.names, some)
        for _ in range(ROUNDS):
            learned = learn(known, released, pair.names, Lesson(rows, released, places), again)
            rows, places = column_readings.surer_half(block_costs(learned_costs(learned), slice(None), some), some)
        return learn(known, released, pair.names, Lesson(rows, released, places), again)
