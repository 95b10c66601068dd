"""Risk measures, one file each, or one a family: an import line here is all that a new one needs."""

from sdcmap.core.catalogue import members
from sdcmap.core.measure import Measure
from sdcmap.risk.attribute_inference import AttributeInference
from sdcmap.risk.closest_record import ClosestRecord
from sdcmap.risk.correct_attribution import CorrectAttribution
from sdcmap.risk.discredit_harm import DiscreditHarm
from sdcmap.risk.expected_reidentifications import ExpectedReidentifications
from sdcmap.risk.external_link import ExternalLink
from sdcmap.risk.household_risk import HouseholdRisk
from sdcmap.risk.index import Index
from sdcmap.risk.individual_risk import IndividualRisk
from sdcmap.risk.informed import Informed
from sdcmap.risk.interval_disclosure import IntervalDisclosure
from sdcmap.risk.intruder_knowledge import IntruderKnowledge
from sdcmap.risk.k_anonymity import KAnonymity
from sdcmap.risk.known_index import KnownIndex
from sdcmap.risk.l_diversity import LDiversity
from sdcmap.risk.linkage import Linkage
from sdcmap.risk.log_linear_risk import LogLinearRisk
from sdcmap.risk.nearest_record import NearestRecord
from sdcmap.risk.position import Position
from sdcmap.risk.small_cells import SmallCells
from sdcmap.risk.suda import SUDA
from sdcmap.risk.t_closeness import TCloseness
from sdcmap.risk.unsafe_combinations import UnsafeCombinations
from sdcmap.risk.worst_linkage import WorstLinkage

RISKS = members(globals(), Measure)
