"""The linkage attack that has learned how reliable each column is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from sdcmap.core import Measure, Method, Microdata, Undefined
from sdcmap.risk.linkage import column_readings
from sdcmap.risk.linkage.attack import Attack
from sdcmap.risk.linkage.column_readings import ColumnEvidence, TrainingPairs, evidence_costs, learn_columns
from sdcmap.risk.linkage.cost_models import CostModel, link_one_to_one_by_cost, link_to_cheapest
from sdcmap.risk.linkage.field_costs import block_costs
from sdcmap.risk.linkage.file_pair import LinkTable, Pair
from sdcmap.risk.linkage.stated_columns import replay_deterministic_steps

SELF_TRAINING_ROUNDS = 4  # rounds of linking and learning without true pairs; more rounds change little
SELF_TRAINING_RECORDS = 2_000  # released records that are linked in each round ...
SELF_TRAINING_PAIRS = 20_000_000  # ... and pairs of records compared, at most
FOLDS = 2  # with true pairs: one half of the file is attacked with what the other half taught


@dataclass(frozen=True)
class Calibrated(Attack):
    """The share of records re-identified by an attacker who knows how reliable each column is.

    The attacker holds records of people whom they can name. They have learned, for each column, how far a released
    value strays from the true one and how often it is exact: a column that was not masked must agree, a swapped one
    hardly counts, a suppressed value does not count. They add up this evidence over all columns and link each released
    record to the known record with the most evidence. They first apply deterministic steps of a published method
    (recoding, top coding, microaggregation) to their own records, where that improves the evidence.

    Parameters
    ----------
    method : how the file was made; a sweep and a release fill it in.
    learned : how the attacker learned the errors. "shadow": the method is published, and they run it on their own
        records with their own seed (needs no true pairs; works for chains and plug-ins). "files": from the two files
        alone: they link, learn from the links, and link again. "pairs": from true pairs, each half of the file
        attacked with what the other half taught; a yardstick that no attacker has, and no upper bound. "best":
        "shadow" where the method is known, else "pairs".
    one_to_one : each known record is linked to at most one released record, so that the sum of the evidence is
        largest.

    Formula: evidence = sum over columns of log P(values | true pair) / P(values | random pair), each column learned
    separately from up to 20,000 pairs. For a number it depends on the distance, in bins of equal counts, on the scale
    (plain, logarithm, rank, or after the deterministic steps) on which true pairs stand out most; for a category it is
    based on P(released | known). Value: expected true links / targets in the file; of t that tie, each is taken with
    probability 1/t.
    Missing: missing before or after masking is a state of its own, whose evidence is learned too. Weights and
    households are not used. Undefined where records have no counterparts. Releasing nothing leaves a guess: 1/n.
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

    # 5: ties are broken the same way on every machine; 6: the share of targets in the file; 7: an order that does not
    # depend on the codes of categories
    revision: ClassVar[int] = 7

    method: Method | None = None
    learned: Literal["best", "shadow", "files", "pairs"] = "best"
    one_to_one: bool = False

    def for_informed_attacker(self, method: Method) -> Measure:
        return replace(self, method=method)

    def link(self, pair: Pair) -> LinkTable:
        return (link_one_to_one_by_cost if self.one_to_one else link_to_cheapest)(pair, self.cost_models(pair))

    def cost_models(self, pair: Pair) -> list[CostModel]:
        """Return the learned costs: one model for all released records, or one for each fold."""
        if self.learned == "shadow" and self.method is None:
            raise Undefined("the method is not known. Score the file in a sweep, or state the method of Calibrated.")
        source = self.learned if self.learned != "best" else "pairs" if self.method is None else "shadow"
        return pair.remember((source, self.method), lambda: self._learn(source, pair))

    def _learn(self, source: str, pair: Pair) -> list[CostModel]:
        """Learn the evidence of all columns from this source."""
        every = np.arange(len(pair.released))
        released = column_readings.take_rows(pair.released_file, pair.released_rows)
        # Training must not depend on the order of rows, so the known file is sorted by its values.
        known, position = pair.known_file.remember("own order", lambda: column_readings.sort_by_values(pair.known_file))
        position = position[pair.known_rows]
        replayed = replay_deterministic_steps(known, self.method)
        if source == "shadow" and self.method is not None:
            learned = learn_columns(
                known, released, pair.names, column_readings.run_shadow(known, self.method), replayed
            )
            return [CostModel(every, evidence_costs(learned, position))]
        if source == "files":
            return [CostModel(every, evidence_costs(self._learn_from_links(pair, known, released, replayed), position))]
        # Train on the true pairs of one fold and attack the other, so that no record is attacked with its own pair.
        truth = np.where(pair.truth >= 0, position[pair.truth], -1)
        models = []
        for fold in range(FOLDS):
            attacked = pair.released_group % FOLDS == fold
            training = np.flatnonzero(~attacked & (truth >= 0))
            if len(training) == 0:
                raise Undefined("there are no true pairs to learn from.")
            pairs = TrainingPairs(truth[training], released, training)
            learned = learn_columns(known, released, pair.names, pairs, replayed)
            models.append(CostModel(np.flatnonzero(attacked), evidence_costs(learned, position)))
        return models

    def _learn_from_links(
        self, pair: Pair, known: Microdata, released: Microdata, replayed: Microdata | None
    ) -> ColumnEvidence:
        """Learn from provisional links instead of true pairs (self-training)."""
        m = len(released)
        count = max(1, min(m, SELF_TRAINING_RECORDS, SELF_TRAINING_PAIRS // len(known)))
        sample = np.unique(np.linspace(0, m - 1, count).astype(np.int64))
        # Start from the most similar records, then alternate: learn from the surer half of the links, and link again.
        rows, positions = column_readings.link_most_similar(known, released, pair.names, sample)
        for _ in range(SELF_TRAINING_ROUNDS):
            learned = learn_columns(known, released, pair.names, TrainingPairs(rows, released, positions), replayed)
            costs = block_costs(evidence_costs(learned), slice(None), sample)
            rows, positions = column_readings.keep_surer_half(costs, sample)
        return learn_columns(known, released, pair.names, TrainingPairs(rows, released, positions), replayed)
