"""Utility measures: a line here is all that a new one needs; `__init__.py` resolves each on first use."""

import sdcmap.core.measure

from .category_loss import CategoryLoss as CategoryLoss
from .class_sizes import AverageClassSize as AverageClassSize
from .class_sizes import Discernibility as Discernibility
from .correlation_loss import CorrelationLoss as CorrelationLoss
from .distribution_distance import KolmogorovSmirnov as KolmogorovSmirnov
from .distribution_distance import Wasserstein as Wasserstein
from .edit_violations import EditViolations as EditViolations
from .information_loss import IL1 as IL1
from .information_loss import IL2 as IL2
from .information_loss import IL3 as IL3
from .information_loss import IL4 as IL4
from .information_loss import IL5 as IL5
from .information_loss import S0 as S0
from .information_loss import S1 as S1
from .information_loss import S2 as S2
from .information_loss import IL1s as IL1s
from .information_loss import RelativeLoss as RelativeLoss
from .interval_overlap import IntervalOverlap as IntervalOverlap
from .interval_width import IntervalWidth as IntervalWidth
from .learned_models import ImportanceAgreement as ImportanceAgreement
from .learned_models import TrainOnRelease as TrainOnRelease
from .mean_precision import MeanPrecision as MeanPrecision
from .moment_change import MomentChange as MomentChange
from .non_uniform_entropy import NonUniformEntropy as NonUniformEntropy
from .precision import Precision as Precision
from .propensity import Propensity as Propensity
from .propensity_tests import PO50 as PO50
from .propensity_tests import SPECKS as SPECKS
from .query_error import QueryError as QueryError
from .sample_distances import MMD as MMD
from .sample_distances import EnergyDistance as EnergyDistance
from .significance_agreement import SignificanceAgreement as SignificanceAgreement
from .society_knowledge import SocietyKnowledge as SocietyKnowledge
from .society_utility import SocietyUtility as SocietyUtility
from .sse_sst import SseSst as SseSst
from .suppression_loss import SuppressionLoss as SuppressionLoss
from .table_change import ConditionalEntropyChange as ConditionalEntropyChange
from .table_change import ContingencyChange as ContingencyChange
from .table_change import CramersVChange as CramersVChange
from .table_change import EntropyChange as EntropyChange
from .table_distance import Hellinger as Hellinger
from .table_distance import TotalVariation as TotalVariation
from .table_error import TableError as TableError
from .worst_subgroup import WorstSubgroup as WorstSubgroup

UTILITIES: tuple[type[sdcmap.core.measure.Measure], ...]
