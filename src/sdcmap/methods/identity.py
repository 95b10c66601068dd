"""Identity: release everything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from numpy.random import Generator

from sdcmap.core.method import Method
from sdcmap.data.microdata import Microdata


@dataclass(frozen=True)
class Identity(Method):
    """The file as it is: the end of the map where everything is released. Every plan contains it.

    Missing values, weights and households stay as they are.

    Examples
    --------
    >>> Identity().text
    'Identity'
    """

    in_every_plan: ClassVar[bool] = True
    random: ClassVar[bool] = False
    kept: ClassVar[str] = "everything"
    distorted: ClassVar[str] = "nothing"

    @property
    def words(self) -> str:
        return "the file as it is"

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        return data.change(None, {})
