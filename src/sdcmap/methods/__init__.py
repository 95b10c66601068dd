"""Masking methods, one file each."""

from sdcmap.methods.chain import Chain
from sdcmap.methods.household_swap import HouseholdSwap
from sdcmap.methods.identity import Identity
from sdcmap.methods.microaggregate import Microaggregate
from sdcmap.methods.mixture_noise import MixtureNoise
from sdcmap.methods.multiplicative_noise import MultiplicativeNoise
from sdcmap.methods.noise import Noise
from sdcmap.methods.pram import Pram
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
from sdcmap.methods.synthesize import Synthesize
from sdcmap.methods.top_code import TopCode

METHODS = (
    Chain,
    HouseholdSwap,
    Identity,
    Microaggregate,
    MixtureNoise,
    MultiplicativeNoise,
    Noise,
    Pram,
    Protect,
    RandomisedResponse,
    RankSwap,
    Recode,
    Round,
    Sample,
    Shuffle,
    Suppress,
    Swap,
    SwapReidentified,
    Synthesize,
    TopCode,
)
