"""The snooper who knows how far each column's values stray."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from sdcmap.core.measure import Measure
from sdcmap.core.method import Method
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Undefined
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.linking.evidence import block_costs, outrun
from sdcmap.kernels.linking.links import block_links
from sdcmap.risk._attack import Attack
from sdcmap.risk._linking import LinkTable, Pair, link_nearest, link_one_to_one, scored_in_blocks
from sdcmap.risk._readings import (
    Learnt,
    Lesson,
    in_own_order,
    learn,
    likest_records,
    redone,
    shadow_of,
    surer_half,
    taken,
)

ROUNDS = 4  # of learning from the files alone
LINKED, LINKED_PAIRS = 2_000, 20_000_000  # records on which that is done, and pairs at most
FOLDS = 2


class Course(NamedTuple):
    """What was learnt for some of the released records (places), the columns in the order of places."""

    places: Array
    learnt: Learnt


@dataclass(frozen=True)
class Calibrated(Attack):
    """The share of records found by a snooper who knows how reliable each column is.

    He holds records of people he can name. Of each column he has learnt how far a released value strays from the true one,
    and how often it is exact: a column that was not masked must agree, a swapped one hardly counts, a suppressed value says
    nothing. He adds up this evidence over all columns, numbers and categories together, and takes the record it speaks
    for. What deterministic steps of a published method do (recoding, top coding, microaggregation), he does to his own
    records first, where that tells more.

    Parameters
    ----------
    method : how the file was made; a sweep and a release fill it in.
    learnt : how he came to know the errors. "shadow": the method is published, and he runs it on his own records, with a
        seed of his own (needs no truth; serves chains and plug-ins). "files": from the two files alone: he links, learns
        from his links, and links again. "pairs": from true pairs, each half of the file attacked with what the other half
        taught: a yardstick that no snooper has, and no bound. "best": "shadow" where the method is known, else "pairs".
    one_to_one : each of his records takes one released record at most, and the evidence in sum is the largest.
    on : the variables he knows; by default the numeric variables and the keys.
    archive : path of his own file, with its own rows and errors; by default he holds the original records.
    row : the archive's column that says which row of the data, from 0, each record is; by default row i is row i.
    sha256 : the first 16 digits of the archive's SHA-256, filled in when left out; another content is refused.
    inclusion : the probability that his target is in the file, in (0, 1]; the share found is multiplied by it, and
        stands without it in `parts` as "prosecutor".

    Formula: evidence = sum over columns of log P(values | true pair) / P(values | random pair), each column's learnt apart:
    a number's by its distance, in bins of equal counts, in the reading (plain, logarithmic, rank, or after the
    deterministic steps) in which true pairs stand out most; a category's by P(released | known). Value: expected hits /
    released records; of t that tie the true one is taken with probability 1/t.
    Missing: missing before or after is a state of its own, whose evidence is learnt too. Weights and households are not
    used. Undefined where records have no counterparts. Releasing nothing leaves a guess: 1/n.
    Reference: Fellegi, Sunter (1969), with levels of agreement learnt from a shadow of the method.

    Examples
    --------
    >>> Calibrated(one_to_one=True).text
    'Calibrated(one_to_one=True)'
    """

    method: Method | None = None
    learnt: Literal["best", "shadow", "files", "pairs"] = "best"
    one_to_one: bool = False

    def knowing(self, method: Method) -> Measure:
        return replace(self, method=method)

    def link(self, pair: Pair) -> LinkTable:
        courses = self._courses(pair)
        m = len(pair.released)

        def scores(known: Array | slice, released: Array | slice = slice(None)) -> Array:
            wanted = np.arange(m)[released]
            total = np.empty((len(pair.known[known]), len(wanted)))
            for places, learnt in courses:
                here = np.flatnonzero(np.isin(wanted, places))
                chosen = learnt.released[wanted[here]]
                total[:, here] = -block_costs(learnt.evidence, learnt.known, chosen, known)
            return total

        if self.one_to_one:
            return link_one_to_one(pair, scored_in_blocks(scores, m))
        return link_nearest(
            pair, lambda first, keep: block_links(lambda rows: scores(first, rows).T, m, len(first), keep)
        )

    def hits(self, pair: Pair, targets: Array) -> tuple[Array, Array]:
        """For the released records at these places: whether another known record fits better than the true one; and how
        many fit as well where none does."""
        beaten, ties = np.ones(len(targets), dtype=np.bool_), np.ones(len(targets), dtype=np.int64)
        for places, learnt in self._courses(pair):
            mine = np.flatnonzero(np.isin(targets, places))
            beaten[mine], ties[mine] = outrun(learnt.evidence, learnt.known, learnt.released, pair.truth, targets[mine])
        return beaten, ties

    def found(self, pair: Pair) -> LinkTable:
        """Which links are true, without the links: what a rate needs, in a fraction of the time."""
        beaten, ties = self.hits(pair, np.arange(len(pair.released)))
        true = np.where(beaten, 0.0, 1.0 / np.maximum(ties, 1))
        size = pair.released_size
        column = np.empty(len(true))
        column[pair.released_rows] = (np.bincount(pair.released_group, true, len(size)) / size)[pair.released_group]
        none = np.full(len(true), np.nan)
        return LinkTable(np.full(len(true), -1), none, none, column, none)

    def _courses(self, pair: Pair) -> list[Course]:
        """What he learnt, for all released records at once or for those of each fold."""
        if self.learnt == "shadow" and self.method is None:
            raise Undefined("nobody said how the file was made: score it in a sweep, or give Calibrated its method.")
        every = np.arange(len(pair.released))
        released = taken(pair.released_file, pair.released_rows)
        known, place = in_own_order(pair.known_file)
        place = place[pair.known_rows]
        again = redone(known, self.method)
        if self.method is not None and self.learnt in ("best", "shadow"):
            learnt = learn(known, released, pair.names, shadow_of(known, self.method), again)
            return [Course(every, learnt._replace(known=learnt.known[place]))]
        truth = np.where(pair.truth >= 0, place[pair.truth], -1)
        if self.learnt == "files":
            return [Course(every, self._by_itself(pair, known, released, again, place))]
        courses = []
        for fold in range(FOLDS):
            mine = pair.released_group % FOLDS == fold
            taught = np.flatnonzero(~mine & (truth >= 0))
            if len(taught) == 0:
                raise Undefined("there are no true pairs to learn from.")
            learnt = learn(known, released, pair.names, Lesson(truth[taught], released, taught), again)
            courses.append(Course(np.flatnonzero(mine), learnt._replace(known=learnt.known[place])))
        return courses

    def _by_itself(
        self, pair: Pair, known: Microdata, released: Microdata, again: Microdata | None, place: Array
    ) -> Learnt:
        """Learnt from his own links: the likest records first, then by what the surer half of the links taught."""
        m = len(released)
        some = np.unique(np.linspace(0, m - 1, max(1, min(m, LINKED, LINKED_PAIRS // len(known)))).astype(np.int64))
        likest = likest_records(known, released, pair.names, some)
        for _ in range(ROUNDS):
            learnt = learn(known, released, pair.names, Lesson(likest.rows, released, likest.places), again)
            costs = block_costs(learnt.evidence, learnt.known, learnt.released[some], slice(None))
            likest = surer_half(costs, some)
        learnt = learn(known, released, pair.names, Lesson(likest.rows, released, likest.places), again)
        return learnt._replace(known=learnt.known[place])
