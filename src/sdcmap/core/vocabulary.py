"""The names that most modules need: files, methods, measures, their parameters, and errors."""

from numpy.random import Generator

from sdcmap.core.estimate import Estimate
from sdcmap.core.formatting import format_number, format_percent, join_names
from sdcmap.core.likelihood import Field, Fields
from sdcmap.core.measure import Measure
from sdcmap.core.method import Method, Trials
from sdcmap.core.risk_measure import RiskMeasure
from sdcmap.core.roles import Roles, Strengths, format_strength
from sdcmap.core.rule import Choice
from sdcmap.core.streams import Stream
from sdcmap.core.value import Positive, Range, Share, Value
from sdcmap.data.microdata import Column, Microdata
from sdcmap.errors import Infeasible, PlanError, SchemaError, SdcmapError, Undefined, did_you_mean
from sdcmap.kernels.arrays import Array, Floats

__all__ = (
    "Array",
    "Choice",
    "Column",
    "Estimate",
    "Field",
    "Fields",
    "Floats",
    "Generator",
    "Infeasible",
    "Measure",
    "Method",
    "Microdata",
    "PlanError",
    "Positive",
    "Range",
    "RiskMeasure",
    "Roles",
    "SchemaError",
    "SdcmapError",
    "Share",
    "Stream",
    "Strengths",
    "Trials",
    "Undefined",
    "Value",
    "did_you_mean",
    "format_number",
    "format_percent",
    "format_strength",
    "join_names",
)  # fmt: skip
