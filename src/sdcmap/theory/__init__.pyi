"""The names of `sdcmap.theory`; `__init__.py` resolves each on first use."""

from . import decision as decision
from .fishing import fishing_in_file as fishing_in_file
from .fishing import fishing_in_population as fishing_in_population
from .fishing import fishing_with_links as fishing_with_links
from .informed_intruders import noise_guessed as noise_guessed
from .informed_intruders import noise_known as noise_known
from .noise_model import EXACT as EXACT
from .noise_model import KNOWLEDGE as KNOWLEDGE
from .noise_model import PAPER as PAPER
from .noise_model import NoiseModel as NoiseModel
from .noise_search import Solution as Solution
from .noise_search import Switch as Switch
from .noise_search import crossings as crossings
from .noise_search import noise_grid as noise_grid
from .noise_search import solve as solve
from .noise_search import strongest as strongest
from .noise_search import switches as switches
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
from .typical_targets import each_record as each_record
from .typical_targets import fixed_target as fixed_target
from .typical_targets import in_file as in_file
from .typical_targets import in_population as in_population
from .typical_targets import in_sample as in_sample
from .typical_targets import index_known as index_known
from .typical_targets import largest_in_file as largest_in_file
from .typical_targets import largest_in_population as largest_in_population
from .typical_targets import link_probability as link_probability
from .typical_targets import linked_record as linked_record
from .typical_targets import perhaps_in_sample as perhaps_in_sample
from .typical_targets import utility as utility
from .typical_targets import utility_of_variance as utility_of_variance

__all__: list[str]
