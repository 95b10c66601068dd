"""Masking methods. Add a line here for a new one; `__init__.py` imports each on first use."""

import sdcmap.core.method

from .average_weights import AverageWeights as AverageWeights
from .chain import Chain as Chain
from .chain import Identity as Identity
from .derive import Derive as Derive
from .household_swap import HouseholdSwap as HouseholdSwap
from .mask_missing import MaskMissing as MaskMissing
from .microaggregate import Microaggregate as Microaggregate
from .mixture_noise import MixtureNoise as MixtureNoise
from .noise import MultiplicativeNoise as MultiplicativeNoise
from .noise import Noise as Noise
from .pram import PRAM as PRAM
from .pram import RandomizedResponse as RandomizedResponse
from .protect import Protect as Protect
from .protect import SwapReidentified as SwapReidentified
from .protect_tails import ProtectTails as ProtectTails
from .rank_swap import RankSwap as RankSwap
from .recode import Recode as Recode
from .recode_locally import RecodeLocally as RecodeLocally
from .repair import Repair as Repair
from .restore_moments import RestoreMoments as RestoreMoments
from .round import Round as Round
from .sample import Sample as Sample
from .shuffle import Shuffle as Shuffle
from .suppress import Suppress as Suppress
from .swap import Swap as Swap
from .synthesize import Synthesize as Synthesize
from .top_code import TopCode as TopCode
from .top_code import TopCodeJointly as TopCodeJointly

METHODS: tuple[type[sdcmap.core.method.Method], ...]
