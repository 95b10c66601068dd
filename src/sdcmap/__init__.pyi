"""The public names of sdcmap, one line a home; `__init__.py` reads this list and resolves each on first use."""

from sdcmap import demo as demo
from sdcmap import errors as errors
from sdcmap import testing as testing
from sdcmap import theory as theory
from sdcmap.charts import draw_map as draw_map
from sdcmap.choose import Choice as Choice
from sdcmap.choose import IdealPoint as IdealPoint
from sdcmap.choose import Linear as Linear
from sdcmap.choose import Threshold as Threshold
from sdcmap.errors import Infeasible as Infeasible
from sdcmap.errors import MissingExtra as MissingExtra
from sdcmap.errors import PlanError as PlanError
from sdcmap.errors import Refused as Refused
from sdcmap.errors import SchemaError as SchemaError
from sdcmap.errors import SdcmapError as SdcmapError
from sdcmap.errors import StudyDamaged as StudyDamaged
from sdcmap.errors import StudyMismatch as StudyMismatch
from sdcmap.errors import Undefined as Undefined
from sdcmap.grid import grid as grid
from sdcmap.grid import subsets as subsets
from sdcmap.io import Source as Source
from sdcmap.io import read as read
from sdcmap.io import write as write
from sdcmap.map import RUMap as RUMap
from sdcmap.measure import Estimate as Estimate
from sdcmap.measure import Measure as Measure
from sdcmap.method import Method as Method
from sdcmap.methods import Chain as Chain
from sdcmap.methods import Identity as Identity
from sdcmap.methods import Noise as Noise
from sdcmap.methods import RankSwap as RankSwap
from sdcmap.methods import Swap as Swap
from sdcmap.microdata import Microdata as Microdata
from sdcmap.plan import Candidate as Candidate
from sdcmap.plan import Plan as Plan
from sdcmap.release import Release as Release
from sdcmap.release import release as release
from sdcmap.report import report as report
from sdcmap.risk import Index as Index
from sdcmap.risk import KnownIndex as KnownIndex
from sdcmap.risk import Position as Position
from sdcmap.risk import SmallCells as SmallCells
from sdcmap.rule import Rule as Rule
from sdcmap.schema import Schema as Schema
from sdcmap.schema import Variable as Variable
from sdcmap.scoring import mask as mask
from sdcmap.scoring import score as score
from sdcmap.study import Scores as Scores
from sdcmap.study import Study as Study
from sdcmap.sweep import sweep as sweep
from sdcmap.utility import Hellinger as Hellinger
from sdcmap.utility import IL1s as IL1s
from sdcmap.utility import MeanPrecision as MeanPrecision
from sdcmap.value import Range as Range

__all__: list[str]
__version__: str

def names_of(*homes: str) -> list[str]: ...
def plug_ins() -> frozenset[str]: ...
