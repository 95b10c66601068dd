"""The snooper who has read the method note."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from sdcmap.core import Array, Measure, Method, Range, Undefined
from sdcmap.core.likelihood import Below, Cells, Field, Mixture, Normal, Same, Transition, Window
from sdcmap.kernels.masking.mixtures import log_mixture
from sdcmap.risk.linkage import file_pair
from sdcmap.risk.linkage.attack import Attack
from sdcmap.risk.linkage.calibrated_attack import Calibrated
from sdcmap.risk.linkage.cost_models import CostModel, cost_model_of, links_one_to_one
from sdcmap.risk.linkage.field_costs import BELOW, CATEGORY, CELL, MIXTURE, SAME, SQUARE, WINDOW, Cost
from sdcmap.risk.linkage.field_links import FieldCosts, likeliest_links
from sdcmap.risk.linkage.file_pair import LinkTable, Pair, link_one_to_one
from sdcmap.risk.linkage.link_search import Links
from sdcmap.risk.linkage.stated_columns import Stated, stated

STEPS = {Window: WINDOW, Below: BELOW, Same: SAME}  # kinds of densities that are all or nothing
SAMPLE = 64  # known records on which the highest value of a density is looked for


@dataclass(frozen=True)
class Informed(Attack):
    """The share of records that a reader of the method note gives back to their owners.

    The snooper holds records of people he can name and knows how the file was made: the method and its parameters, but
    not the seed. He computes how likely each released record is, had it been each of his records before masking, and
    takes the one-to-one links that are likeliest together. He succeeds when a link is true.

    Parameters
    ----------
    method : how the file was made; a sweep and a release fill it in. Without it the value is undefined.
    slip : the probability that a field of a true pair is not what the method makes of it (an error of his archive),
        in (0, 1): no field weighs more than log(slip) against a pair.
    on : the variables he knows; by default every column that somebody could know (all but weights, households and strata).
        Those that the method does not mask must be equal. The strata that the method works in he knows too.

    Formula: the assignment with the largest sum over links of log P(released | known), a sum over the fields that the
    method states (`Method.log_likelihood`), each at least log(slip) below its highest value; noise: nearest records in
    units of the noise; a rank swap: records in each other's rank windows of all variables. Of a chain, deterministic
    steps before a random one are done again on his records; steps on one variable count by their likelihood together, as
    Chain states it (noises add up, transitions multiply, what was rounded, cut or classed after them lies in a cell); and
    columns of which none is stated by what he learned from a shadow of the chain, as in Calibrated. Value: expected hits /
    released records; records with equal values are exchanged at random. Beyond 25 million pairs the best candidates of
    each record are assigned, with the share "linked" and the "gap" to the optimum in `parts`.
    Missing: missing on both sides says nothing, on one side alone it counts as a slip. Weights and households are not used.
    Undefined where the method is not known or states no likelihood. Releasing nothing leaves a guess: 1/n.
    Reference: Yancey, Winkler, Creecy (2002), data of Table 2; Nin, Herranz, Torra (2008) on rank swapping.

    Examples
    --------
    >>> Informed(slip=0.001).text
    'Informed(slip=0.001)'
    """

    label: ClassVar[str] = "Re-identified, method known"
    description: ClassVar[str] = "Share of records re-identified by an attacker who has read the method note."

    revision: ClassVar[int] = 6  # 4: what a chain rounds; 5: steps on one variable; 6: ties alike on every machine

    method: Method | None = None
    slip: Annotated[float, Range(0, 1, "()")] = 1e-9

    def for_informed_attacker(self, method: Method) -> Measure:
        return replace(self, method=method)

    @property
    def by_column(self) -> bool:
        return False

    def courses(self, pair: Pair) -> list[CostModel]:
        fields, unstated = self._stated(pair)
        exact = pair.originals and normal_coordinates(fields) is not None  # originals need no allowance for slips
        cap = math.inf if exact and not unstated else -math.log(self.slip)
        costs = [density_cost(field, cap) for field in fields]
        if unstated:
            costs += self._learned(pair, unstated)
        return [cost_model_of(pair, costs)]

    def _learned(self, pair: Pair, unstated: Mapping[str, str]) -> list[Cost]:
        """The costs of columns for which the method states nothing, learned from a shadow.

        For one released record, a likelihood
        and a likelihood over that of a random pair differ by a constant, so the two add up."""
        (course,) = Calibrated(self.method, "shadow").courses(pair)
        return [course.costs[place] for place, name in enumerate(pair.names) if name in unstated]

    def unstated(self, pair: Pair) -> dict[str, str]:
        """The columns whose errors he had to learn, each with the reason."""
        return self._stated(pair).unstated

    def link(self, pair: Pair) -> LinkTable:
        fields, unstated = self._stated(pair)
        if unstated:
            return links_one_to_one(pair, self.courses(pair))
        normal = normal_coordinates(fields) if pair.originals else None  # originals need no allowance for slips
        if normal is not None:
            return link_one_to_one(pair, file_pair.scored_by_distance(*normal))
        floors = [(field, _highest(field) + np.log(self.slip)) for field in fields]

        def block(rows: Array | slice) -> Array:
            total = np.zeros((len(pair.known[rows]), len(pair.released)))
            for field, floor in floors:
                total += np.maximum(field.block(rows), floor)
            return total

        costs = field_costs(fields, -np.log(self.slip))
        if costs is None:
            return link_one_to_one(pair, file_pair.scored_in_blocks(block, len(pair.released)))

        def best(rows: Array, keep: int) -> Links:
            def score(places: Array, index: Array) -> Array:
                return sum((np.maximum(f.pairs(rows[places], index), floor) for f, floor in floors), np.zeros(1))

            return likeliest_links(costs._replace(a=costs.a[rows]), score, keep)

        return link_one_to_one(pair, file_pair.Scoring(block, best))

    def _stated(self, pair: Pair) -> Stated:
        if self.method is None:
            raise Undefined("nobody said how the file was made: score it in a sweep, or give Informed its method.")
        return stated(self.method, pair)


def density_cost(field: Field, cap: float) -> Cost:
    """What a field costs a pair: its highest log density less that of the pair, at most `cap`."""
    density, known, released = field.density, field.known, field.released
    if isinstance(density, Normal) and density.sd > 0:
        return Cost(SQUARE, known, released, 0.5 / density.sd**2, cap, one=cap)
    if isinstance(density, Cells):
        return _cell_cost(density, known, released, cap)
    if isinstance(density, Mixture):
        weights, centers, sds = (np.array(part) for part in (density.weights, density.centers, density.sds))
        table = np.column_stack([np.log(weights / sds), centers, 0.5 / sds**2]).ravel()
        top = float(np.max(log_mixture(centers, weights, centers, sds)))
        return Cost(MIXTURE, known, released, cap=cap, one=cap, table=np.concatenate([table, [top]]))
    if (kind := STEPS.get(type(density))) is not None:
        return Cost(kind, known, released, getattr(density, "width", 1.0), cap, one=cap)
    if isinstance(density, Transition):
        return _transition_cost(density, known, released, cap)
    raise Undefined(f"a density of the kind {type(density).__name__} cannot be added up field by field.")


def _cell_cost(density: Cells, known: Array, released: Array, cap: float) -> Cost:
    """The table of cells: their ends, and the log chance of each from its middle; an open one is certain from afar."""
    bounded = np.isfinite(density.low) & np.isfinite(density.high)
    middle = np.where(bounded, (density.low + density.high) / 2, 0.0)
    with np.errstate(invalid="ignore"):
        best = density(middle, np.arange(len(middle)))
    table = np.column_stack([density.low, density.high, np.where(bounded, best, 0.0)]).ravel()
    scale = 1 / (density.sd * math.sqrt(2))
    return Cost(CELL, known, released, cap=cap, one=cap, table=np.concatenate([[scale], table]))


def _transition_cost(density: Transition, known: Array, released: Array, cap: float) -> Cost:
    """The table of codes, with a code for missing: missing on both sides says nothing, on one alone it is a slip."""
    rows, columns = density.matrix.shape
    with np.errstate(divide="ignore"):
        log_p = np.log(density.matrix)
    table = np.full((rows + 1, columns + 1), cap)
    table[:rows, :columns] = np.minimum(log_p.max() - log_p, cap)
    table[rows, columns] = 0.0
    a, b = np.where(np.isnan(known), rows, known), np.where(np.isnan(released), columns, released)
    return Cost(CATEGORY, a, b, float(columns + 1), table=table.ravel())


def normal_coordinates(fields: Sequence[Field]) -> tuple[Array, Array] | None:
    """Both files in units of the noise, where all fields are normal and complete: squared distance is -2 log p."""
    units = np.array([field.density.sd for field in fields if isinstance(field.density, Normal)])
    if not fields or len(units) < len(fields) or not (units > 0).all():
        return None
    known, released = (np.column_stack([getattr(field, side) for field in fields]) for side in ("known", "released"))
    return None if np.isnan(known).any() or np.isnan(released).any() else (known / units, released / units)


def field_costs(fields: Sequence[Field], cap: float) -> FieldCosts | None:
    """What each field costs a pair, for `likeliest_links`; None where a density is of another kind."""
    kinds, parts = [], []
    for density in (field.density for field in fields):
        components = [(cap, 0.0, 0.0)]
        if isinstance(density, Normal) and density.sd > 0:
            components = [(0.0, 0.0, 0.5 / density.sd**2)]
        elif isinstance(density, Mixture):
            height = np.log(np.array(density.weights) / np.array(density.sds))
            top = density(np.zeros(1), np.array(density.centers)).max()
            each = zip(height, density.centers, density.sds, strict=True)
            components = [(top - h, center, 0.5 / sd**2) for h, center, sd in each]
        elif type(density) not in STEPS:
            return None
        kinds.append(STEPS.get(type(density), MIXTURE))
        parts.append(components)
    if not fields:
        return None
    most = max(map(len, parts))
    filled = [[*part, *[(cap, 0.0, 0.0)] * (most - len(part))] for part in parts]
    sides = [_columns(field, kind) for field, kind in zip(fields, kinds, strict=True)]
    width = np.array([getattr(field.density, "width", 0.0) for field in fields])
    known, released = (np.column_stack([side[k] for side in sides]) for k in (0, 1))
    return FieldCosts(np.array(kinds), known, released, np.full(len(kinds), cap), width, np.array(filled))


def _columns(field: Field, kind: int) -> tuple[Array, Array]:
    """Both sides of a field; values that must be equal as the numbers of distinct values, which float32 holds exactly."""
    if kind != SAME:
        middle = np.nanmedian(field.released) if kind == MIXTURE and not np.isnan(field.released).all() else 0.0
        return field.known - middle, field.released - middle
    both = np.concatenate([field.known, field.released])
    code = np.unique(both, return_inverse=True)[1].astype(float)
    code[np.isnan(both)] = np.nan
    return code[: len(field.known)], code[len(field.known) :]


def _highest(field: Field) -> float:
    """The highest log density of a field, on a sample of known records."""
    rows = np.linspace(0, len(field.known) - 1, min(SAMPLE, len(field.known))).astype(np.int64)
    top = float(field.block(rows).max())
    return top if np.isfinite(top) else 0.0
