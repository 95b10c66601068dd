"""Masking methods, one file each, or one a family: an import line here is all that a new one needs."""

from sdcmap.core.catalogue import members
from sdcmap.core.method import Method
from sdcmap.methods.chain import Chain
from sdcmap.methods.household_swap import HouseholdSwap
from sdcmap.methods.identity import Identity
from sdcmap.methods.microaggregate import Microaggregate
from sdcmap.methods.mixture_noise import MixtureNoise
from sdcmap.methods.multiplicative_noise import MultiplicativeNoise
from sdcmap.methods.noise import Noise
from sdcmap.methods.pram import PRAM
from sdcmap.methods.protect import Protect
from sdcmap.methods.randomised_response import RandomisedResponse
from sdcmap.methods.rank_swap import RankSwap
from sdcmap.methods.recode import Recode
from sdcmap.methods.round import Round
from sdcmap.methods.sample import Sample
from sdcmap.methods.shuffle import Shuffle
from sdcmap.methods.suppress import Suppress
from sdcmap.methods.swap import Swap
from sdcmap.methods.swap_reidentified import SwapReidentified
from sdcmap.methods.synthesise import Synthesise
from sdcmap.methods.top_code import TopCode

METHODS = members(globals(), Method)
