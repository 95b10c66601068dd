from .analysis import Analysis as Analysis
from .run_paper import run as run
