"""What every kernel takes and gives: an array of numpy."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]
