"""Utility measures, one file each."""

from sdcmap.utility.conditional_entropy_change import ConditionalEntropyChange
from sdcmap.utility.contingency_change import ContingencyChange
from sdcmap.utility.cramers_v_change import CramersVChange
from sdcmap.utility.entropy_change import EntropyChange
from sdcmap.utility.hellinger import Hellinger
from sdcmap.utility.il1s import IL1s
from sdcmap.utility.mean_precision import MeanPrecision
from sdcmap.utility.total_variation import TotalVariation

UTILITIES = (
    ConditionalEntropyChange,
    ContingencyChange,
    CramersVChange,
    EntropyChange,
    Hellinger,
    IL1s,
    MeanPrecision,
    TotalVariation,
)
