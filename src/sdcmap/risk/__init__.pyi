"""Risk measures: a line here is all that a new one needs; `__init__.py` resolves each on first use."""

import sdcmap.core.measure

from .area_from_design import AreaFromDesign as AreaFromDesign
from .attribute_inference import AttributeInference as AttributeInference
from .closest_record import ClosestRecord as ClosestRecord
from .closest_record import Identifiability as Identifiability
from .exact_match import ExactMatch as ExactMatch
from .exact_match import ExternalLink as ExternalLink
from .exact_match import RecordRisk as RecordRisk
from .extreme_values import ExtremeValues as ExtremeValues
from .individual_risk import ExpectedReidentifications as ExpectedReidentifications
from .individual_risk import HouseholdRisk as HouseholdRisk
from .individual_risk import IndividualRisk as IndividualRisk
from .interval_disclosure import DRisk as DRisk
from .interval_disclosure import DRiskRMD as DRiskRMD
from .interval_disclosure import IntervalDisclosure as IntervalDisclosure
from .intruder_knowledge import DiscreditHarm as DiscreditHarm
from .intruder_knowledge import IntruderKnowledge as IntruderKnowledge
from .k_map import DeltaPresence as DeltaPresence
from .k_map import KMap as KMap
from .l_diversity import AlphaKAnonymity as AlphaKAnonymity
from .l_diversity import BetaLikeness as BetaLikeness
from .l_diversity import DeltaDisclosure as DeltaDisclosure
from .l_diversity import LDiversity as LDiversity
from .largest_units import LargestUnits as LargestUnits
from .largest_units import PPercent as PPercent
from .linkability import Linkability as Linkability
from .linkage.calibrated_attack import Calibrated as Calibrated
from .linkage.household_link import HouseholdLink as HouseholdLink
from .linkage.informed_attack import Informed as Informed
from .linkage.nearest_record import NearestRecord as NearestRecord
from .linkage.record_linkage import Linkage as Linkage
from .linkage.surest_links import SurestLinks as SurestLinks
from .linkage.worst_linkage import WorstLinkage as WorstLinkage
from .marked_records import MarkedRecords as MarkedRecords
from .noise_knowledge import MeanGuess as MeanGuess
from .noise_knowledge import PositionNoiseGuessed as PositionNoiseGuessed
from .noise_knowledge import PositionNoiseKnown as PositionNoiseKnown
from .outlier_membership import OutlierMembership as OutlierMembership
from .population_uniqueness import LogLinearRisk as LogLinearRisk
from .population_uniqueness import PopulationUniqueness as PopulationUniqueness
from .position import Index as Index
from .position import KnownIndex as KnownIndex
from .position import Position as Position
from .published_tables import PublishedTables as PublishedTables
from .rapid import RAPID as RAPID
from .rapid import CorrectAttribution as CorrectAttribution
from .reconstruction import Reconstruction as Reconstruction
from .singling_out import SinglingOut as SinglingOut
from .small_cells import KAnonymity as KAnonymity
from .small_cells import ReplicatedUniques as ReplicatedUniques
from .small_cells import SmallCells as SmallCells
from .small_cells import UnsafeCombinations as UnsafeCombinations
from .special_uniques import SUDA as SUDA
from .special_uniques import SpecialUniques as SpecialUniques
from .t_closeness import TCloseness as TCloseness
from .unsafe_records import UnsafeRecords as UnsafeRecords
from .worst_membership import WorstMembership as WorstMembership

RISKS: tuple[type[sdcmap.core.measure.Measure], ...]
