"""Utility measures, one file each, or one a family: an import line here is all that a new one needs."""

from sdcmap.core.catalogue import members
from sdcmap.core.measure import Measure
from sdcmap.utility.category_loss import CategoryLoss
from sdcmap.utility.conditional_entropy_change import ConditionalEntropyChange
from sdcmap.utility.contingency_change import ContingencyChange
from sdcmap.utility.cramers_v_change import CramersVChange
from sdcmap.utility.entropy_change import EntropyChange
from sdcmap.utility.hellinger import Hellinger
from sdcmap.utility.il1 import IL1
from sdcmap.utility.il1s import IL1s
from sdcmap.utility.il2 import IL2
from sdcmap.utility.il3 import IL3
from sdcmap.utility.il4 import IL4
from sdcmap.utility.il5 import IL5
from sdcmap.utility.interval_overlap import IntervalOverlap
from sdcmap.utility.interval_width import IntervalWidth
from sdcmap.utility.kolmogorov_smirnov import KolmogorovSmirnov
from sdcmap.utility.mean_precision import MeanPrecision
from sdcmap.utility.moment_change import MomentChange
from sdcmap.utility.propensity import Propensity
from sdcmap.utility.query_error import QueryError
from sdcmap.utility.relative_loss import RelativeLoss
from sdcmap.utility.s0 import S0
from sdcmap.utility.s1 import S1
from sdcmap.utility.s2 import S2
from sdcmap.utility.society_knowledge import SocietyKnowledge
from sdcmap.utility.society_utility import SocietyUtility
from sdcmap.utility.sse_sst import SseSst
from sdcmap.utility.suppression_loss import SuppressionLoss
from sdcmap.utility.table_error import TableError
from sdcmap.utility.total_variation import TotalVariation
from sdcmap.utility.wasserstein import Wasserstein

UTILITIES = members(globals(), Measure)
