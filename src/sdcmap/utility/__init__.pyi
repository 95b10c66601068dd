"""Utility measures: a line here is all that a new one needs; `__init__.py` resolves each on first use."""

import sdcmap.core.measure

from .analysis_change import AnalysisError as AnalysisError
from .analysis_change import ChangedConclusions as ChangedConclusions
from .category_loss import CategoryLoss as CategoryLoss
from .category_loss import SuppressionLoss as SuppressionLoss
from .edit_violations import EditViolations as EditViolations
from .generalization_loss import AverageClassSize as AverageClassSize
from .generalization_loss import Discernibility as Discernibility
from .generalization_loss import NonUniformEntropy as NonUniformEntropy
from .generalization_loss import Precision as Precision
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
from .interval_overlap import IntervalWidth as IntervalWidth
from .interval_overlap import SignificanceAgreement as SignificanceAgreement
from .learned_models import ImportanceAgreement as ImportanceAgreement
from .learned_models import TrainOnRelease as TrainOnRelease
from .moment_change import CorrelationLoss as CorrelationLoss
from .moment_change import MomentChange as MomentChange
from .propensity import PO50 as PO50
from .propensity import SPECKS as SPECKS
from .propensity import Propensity as Propensity
from .query_error import QueryError as QueryError
from .sample_distances import MMD as MMD
from .sample_distances import EnergyDistance as EnergyDistance
from .sample_distances import KolmogorovSmirnov as KolmogorovSmirnov
from .sample_distances import Wasserstein as Wasserstein
from .society_knowledge import SocietyKnowledge as SocietyKnowledge
from .society_knowledge import SocietyUtility as SocietyUtility
from .sse_sst import MeanPrecision as MeanPrecision
from .sse_sst import SseSst as SseSst
from .table_losses import ConditionalEntropyChange as ConditionalEntropyChange
from .table_losses import ContingencyChange as ContingencyChange
from .table_losses import CramersVChange as CramersVChange
from .table_losses import EntropyChange as EntropyChange
from .table_losses import Hellinger as Hellinger
from .table_losses import TableError as TableError
from .table_losses import TotalVariation as TotalVariation
from .worst_subgroup import WorstSubgroup as WorstSubgroup

UTILITIES: tuple[type[sdcmap.core.measure.Measure], ...]
