"""The names of `vocabulary.py`, resolved on first use."""

from .vocabulary import Array as Array
from .vocabulary import Choice as Choice
from .vocabulary import Column as Column
from .vocabulary import Estimate as Estimate
from .vocabulary import Field as Field
from .vocabulary import Fields as Fields
from .vocabulary import Floats as Floats
from .vocabulary import Generator as Generator
from .vocabulary import Infeasible as Infeasible
from .vocabulary import Measure as Measure
from .vocabulary import Method as Method
from .vocabulary import Microdata as Microdata
from .vocabulary import PlanError as PlanError
from .vocabulary import Positive as Positive
from .vocabulary import Range as Range
from .vocabulary import RiskMeasure as RiskMeasure
from .vocabulary import Roles as Roles
from .vocabulary import SchemaError as SchemaError
from .vocabulary import SdcmapError as SdcmapError
from .vocabulary import Share as Share
from .vocabulary import Stream as Stream
from .vocabulary import Strengths as Strengths
from .vocabulary import Trials as Trials
from .vocabulary import Undefined as Undefined
from .vocabulary import Value as Value
from .vocabulary import did_you_mean as did_you_mean
from .vocabulary import format_number as format_number
from .vocabulary import format_percent as format_percent
from .vocabulary import format_strength as format_strength
from .vocabulary import join_names as join_names

__all__: list[str]
