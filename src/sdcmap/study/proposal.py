"""What a search proposed: a row beside the candidate, which says where it came from. It is never on a map."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import NamedTuple

from sdcmap.core.method import Method
from sdcmap.core.value import decode


class Proposal(NamedTuple):
    """One row of the table `proposal`.

    search : which search, by the digest of all that decides what it proposes. candidate : its id. generation : 1 are the
    starts. place : its place in the order of proposal within the generation. method : the spec, as JSON. parents : ids of
    the candidates it was made from, as a JSON list. point : its place in the space, a JSON list; empty where a method of
    the plan was changed.
    """

    search: str
    candidate: str
    generation: int
    place: int
    method: str
    parents: str
    point: str

    @property
    def decoded(self) -> Method:
        """The method itself."""
        return _decoded(self.method)


@lru_cache(maxsize=4096)
def _decoded(spec: str) -> Method:
    """A search asks for the same ones in every generation."""
    return decode(json.loads(spec), Method)
