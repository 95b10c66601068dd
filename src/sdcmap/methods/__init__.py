"""Masking methods, one file each."""

from sdcmap.methods.chain import Chain
from sdcmap.methods.identity import Identity
from sdcmap.methods.noise import Noise
from sdcmap.methods.rank_swap import RankSwap
from sdcmap.methods.swap import Swap

METHODS = (Chain, Identity, Noise, RankSwap, Swap)
