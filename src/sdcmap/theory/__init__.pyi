"""The names of `sdcmap.theory`; `__init__.py` resolves each on first use."""

from . import decision as decision
from .fishing import fishing_in_file as fishing_in_file
from .fishing import fishing_in_population as fishing_in_population
from .fishing import fishing_linked as fishing_linked
from .informed import noise_guessed as noise_guessed
from .informed import noise_known as noise_known
from .model import EXACT as EXACT
from .model import KNOWLEDGE as KNOWLEDGE
from .model import PAPER as PAPER
from .model import NoiseModel as NoiseModel
from .positions import extreme as extreme
from .positions import extreme_exact as extreme_exact
from .positions import large_sample_moments as large_sample_moments
from .positions import normal_scores as normal_scores
from .positions import percentile as percentile
from .positions import percentile_exact as percentile_exact
from .positions import percentile_of_any as percentile_of_any
from .positions import position_in_file as position_in_file
from .positions import position_known as position_known
from .positions import rank_of as rank_of
from .solving import Solution as Solution
from .solving import Switch as Switch
from .solving import crossings as crossings
from .solving import noise_grid as noise_grid
from .solving import solve as solve
from .solving import strongest as strongest
from .solving import switches as switches
from .typical import each_record as each_record
from .typical import fixed_target as fixed_target
from .typical import in_file as in_file
from .typical import in_population as in_population
from .typical import in_sample as in_sample
from .typical import index_known as index_known
from .typical import largest_in_file as largest_in_file
from .typical import largest_in_population as largest_in_population
from .typical import link_probability as link_probability
from .typical import linked as linked
from .typical import perhaps_in_sample as perhaps_in_sample
from .typical import utility as utility
from .typical import utility_of_variance as utility_of_variance

__all__: list[str]
