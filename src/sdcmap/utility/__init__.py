"""Utility measures, one file each, or one a family: an import line here is all that a new one needs."""

from sdcmap.core.catalogue import members
from sdcmap.core.measure import Measure
from sdcmap.utility.category_loss import CategoryLoss
from sdcmap.utility.distribution_distance import KolmogorovSmirnov, Wasserstein
from sdcmap.utility.information_loss import IL1, IL2, IL3, IL4, IL5, S0, S1, S2, IL1s, RelativeLoss
from sdcmap.utility.interval_overlap import IntervalOverlap
from sdcmap.utility.interval_width import IntervalWidth
from sdcmap.utility.mean_precision import MeanPrecision
from sdcmap.utility.moment_change import MomentChange
from sdcmap.utility.propensity import Propensity
from sdcmap.utility.query_error import QueryError
from sdcmap.utility.society_knowledge import SocietyKnowledge
from sdcmap.utility.society_utility import SocietyUtility
from sdcmap.utility.sse_sst import SseSst
from sdcmap.utility.suppression_loss import SuppressionLoss
from sdcmap.utility.table_change import ConditionalEntropyChange, ContingencyChange, CramersVChange, EntropyChange
from sdcmap.utility.table_distance import Hellinger, TotalVariation
from sdcmap.utility.table_error import TableError

UTILITIES = members(globals(), Measure)
