"""Risk measures: a line here is all that a new one needs; `__init__.py` resolves each on first use."""

import sdcmap.core.measure

from .alpha_k_anonymity import AlphaKAnonymity as AlphaKAnonymity
from .area_from_design import AreaFromDesign as AreaFromDesign
from .attribute_inference import AttributeInference as AttributeInference
from .beta_likeness import BetaLikeness as BetaLikeness
from .closest_record import ClosestRecord as ClosestRecord
from .correct_attribution import CorrectAttribution as CorrectAttribution
from .d_risk import DRisk as DRisk
from .d_risk_rmd import DRiskRMD as DRiskRMD
from .delta_disclosure import DeltaDisclosure as DeltaDisclosure
from .delta_presence import DeltaPresence as DeltaPresence
from .discredit_harm import DiscreditHarm as DiscreditHarm
from .exact_match import ExactMatch as ExactMatch
from .expected_reidentifications import ExpectedReidentifications as ExpectedReidentifications
from .external_link import ExternalLink as ExternalLink
from .household_risk import HouseholdRisk as HouseholdRisk
from .identifiability import Identifiability as Identifiability
from .index import Index as Index
from .individual_risk import IndividualRisk as IndividualRisk
from .interval_disclosure import IntervalDisclosure as IntervalDisclosure
from .intruder_knowledge import IntruderKnowledge as IntruderKnowledge
from .k_anonymity import KAnonymity as KAnonymity
from .k_map import KMap as KMap
from .known_index import KnownIndex as KnownIndex
from .l_diversity import LDiversity as LDiversity
from .largest_units import LargestUnits as LargestUnits
from .linkability import Linkability as Linkability
from .linkage.calibrated_attack import Calibrated as Calibrated
from .linkage.household_link import HouseholdLink as HouseholdLink
from .linkage.informed_attack import Informed as Informed
from .linkage.nearest_record import NearestRecord as NearestRecord
from .linkage.record_linkage import Linkage as Linkage
from .linkage.worst_linkage import WorstLinkage as WorstLinkage
from .log_linear_risk import LogLinearRisk as LogLinearRisk
from .marked_records import MarkedRecords as MarkedRecords
from .p_percent import PPercent as PPercent
from .population_uniqueness import PopulationUniqueness as PopulationUniqueness
from .position import Position as Position
from .published_tables import PublishedTables as PublishedTables
from .rapid import RAPID as RAPID
from .record_risk import RecordRisk as RecordRisk
from .replicated_uniques import ReplicatedUniques as ReplicatedUniques
from .singling_out import SinglingOut as SinglingOut
from .small_cells import SmallCells as SmallCells
from .special_uniques import SpecialUniques as SpecialUniques
from .suda import SUDA as SUDA
from .t_closeness import TCloseness as TCloseness
from .unsafe_combinations import UnsafeCombinations as UnsafeCombinations
from .worst_membership import WorstMembership as WorstMembership

RISKS: tuple[type[sdcmap.core.measure.Measure], ...]
