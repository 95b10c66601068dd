"""The linkage attack that has read the method note and uses the likelihood that the method states."""

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
from sdcmap.risk.linkage.column_readings import MAX_TABLE_CELLS
from sdcmap.risk.linkage.cost_models import CostModel, build_cost_model, link_one_to_one_by_cost
from sdcmap.risk.linkage.field_costs import BELOW, CATEGORY, CELL, MIXTURE, SAME, SQUARE, WINDOW, Cost
from sdcmap.risk.linkage.field_links import FieldCosts, find_likeliest_links
from sdcmap.risk.linkage.file_pair import LinkTable, Pair, link_one_to_one
from sdcmap.risk.linkage.link_search import Links
from sdcmap.risk.linkage.stated_columns import StatedLikelihood, state_likelihood

ALL_OR_NOTHING = {Window: WINDOW, Below: BELOW, Same: SAME}  # densities that are constant or zero, and their costs
DENSITY_SAMPLE_RECORDS = 64  # known records on which the maximum of a density is estimated


@dataclass(frozen=True)
class Informed(Attack):
    """The share of records re-identified by an attacker who has read the method note.

    The attacker holds records of people whom they can name, and knows how the file was made: the method and its
    parameters, but not the seed. They compute how likely each released record is, given each of their records before
    masking, and take the one-to-one links that are likeliest together. They succeed when a link is true.

    Parameters
    ----------
    method : how the file was made; a sweep and a release fill it in. Without it the value is undefined.
    slip : the probability that a field of a true pair contradicts the method (an error in the archive), in (0, 1). No
        field weighs more than log(slip) against a pair.
    on : the variables the attacker knows; by default every column that an attacker could know (all but weights,
        households and strata). Columns that the method does not mask must be equal. The attacker also knows the strata
        of the method.

    Formula: the assignment with the largest sum over links of log P(released | known), a sum over the fields that the
    method states (`Method.log_likelihood`), each at least log(slip) below its maximum. For noise these are the nearest
    records in units of the noise; for a rank swap, records within each other's rank windows. In a chain, deterministic
    steps before a random one are replayed on the known records. Steps on one variable count by their joint likelihood,
    as Chain states it (noises add up, transitions multiply, values rounded, cut or classed afterwards lie in a cell).
    Columns without a stated likelihood count by evidence learned from a shadow of the chain, as in Calibrated. Value:
    expected true links / targets in the file; records with equal values are exchanged at random. Beyond 25 million pairs
    the best candidates of each record are assigned, with the share "linked" and the "gap" to the optimum in `parts`.
    Missing: missing on both sides does not count; missing on one side counts as a slip. Weights and households are not
    used. Undefined if the method is not known or states no likelihood. Releasing nothing leaves a guess: 1/n.
    Reference: Yancey, Winkler, Creecy (2002), data of Table 2; Nin, Herranz, Torra (2008) on rank swapping.

    Examples
    --------
    >>> Informed(slip=0.001).text
    'Informed(slip=0.001)'
    """

    label: ClassVar[str] = "Re-identified, method known"
    description: ClassVar[str] = "Share of records re-identified by an attacker who has read the method note."

    # 6: ties are broken the same way on every machine; 7: the share of targets in the file; 8: transition probabilities
    # count by their exact maximum, and large files are assigned to the optimum
    revision: ClassVar[int] = 8

    method: Method | None = None
    slip: Annotated[float, Range(0, 1, "()")] = 1e-9

    def for_informed_attacker(self, method: Method) -> Measure:
        return replace(self, method=method)

    @property
    def has_column_costs(self) -> bool:
        return False

    def cost_models(self, pair: Pair) -> list[CostModel]:
        fields, unstated = self._state_likelihood(pair)
        # An attacker with the original records makes no errors, so pure noise needs no allowance for slips.
        exact = pair.holds_originals and normal_coordinates(fields) is not None
        cap = math.inf if exact and not unstated else -math.log(self.slip)
        costs = [density_cost(field, cap) for field in fields]
        if unstated:
            costs += self._learn_costs(pair, unstated)
        return [build_cost_model(pair, costs)]

    def _learn_costs(self, pair: Pair, unstated: Mapping[str, str]) -> list[Cost]:
        """Return the costs of columns without a stated likelihood, learned from a shadow.

        For one released record, a likelihood and a likelihood ratio against random pairs differ by a constant, so the
        two can be added.
        """
        (model,) = Calibrated(self.method, "shadow").cost_models(pair)
        return [model.costs[index] for index, name in enumerate(pair.names) if name in unstated]

    def unstated_columns(self, pair: Pair) -> dict[str, str]:
        """Return the columns whose errors had to be learned, each with the reason."""
        return self._state_likelihood(pair).unstated

    def link(self, pair: Pair) -> LinkTable:
        fields, unstated = self._state_likelihood(pair)
        if unstated:
            return link_one_to_one_by_cost(pair, self.cost_models(pair))
        normal = normal_coordinates(fields) if pair.holds_originals else None
        if normal is not None:
            return link_one_to_one(pair, file_pair.score_by_distance(*normal))
        floors = [(field, _highest_log_density(field) + np.log(self.slip)) for field in fields]

        def block(rows: Array | slice) -> Array:
            total = np.zeros((len(pair.known[rows]), len(pair.released)))
            for field, floor in floors:
                total += np.maximum(field.block(rows), floor)
            return total

        costs = build_field_costs(fields, -np.log(self.slip))
        if costs is None:
            try:
                models = self.cost_models(pair)
            except Undefined:  # a density of another package
                return link_one_to_one(pair, file_pair.score_in_blocks(block, len(pair.released)))
            return link_one_to_one_by_cost(pair, models)

        def best(rows: Array, keep: int) -> Links:
            def score(positions: Array, index: Array) -> Array:
                return sum((np.maximum(f.pairs(rows[positions], index), floor) for f, floor in floors), np.zeros(1))

            return find_likeliest_links(costs._replace(a=costs.a[rows]), score, keep)

        return link_one_to_one(pair, file_pair.Scoring(block, best))

    def _state_likelihood(self, pair: Pair) -> StatedLikelihood:
        if self.method is None:
            raise Undefined("the method is not known. Score the file in a sweep, or state the method of Informed.")
        return state_likelihood(self.method, pair)


def density_cost(field: Field, cap: float) -> Cost:
    """Return the cost of a field: its maximum log density minus that of the pair, at most `cap`."""
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
    if (kind := ALL_OR_NOTHING.get(type(density))) is not None:
        return Cost(kind, known, released, getattr(density, "width", 1.0), cap, one=cap)
    if isinstance(density, Transition):
        return _transition_cost(density, known, released, cap)
    if (cost := _tabulate(field, cap)) is not None:
        return cost
    raise Undefined(f"a density of the kind {type(density).__name__} has no cost for each field.")


def _cell_cost(density: Cells, known: Array, released: Array, cap: float) -> Cost:
    """Return the cost of a value that lies in a cell.

    The table has the ends of each cell, and the log probability of the cell from its middle. An open cell is certain
    from far away.
    """
    bounded = np.isfinite(density.low) & np.isfinite(density.high)
    middle = np.where(bounded, (density.low + density.high) / 2, 0.0)
    with np.errstate(invalid="ignore"):
        best = density(middle, np.arange(len(middle)))
    table = np.column_stack([density.low, density.high, np.where(bounded, best, 0.0)]).ravel()
    scale = 1 / (density.sd * math.sqrt(2))
    return Cost(CELL, known, released, cap=cap, one=cap, table=np.concatenate([[scale], table]))


def _transition_cost(density: Transition, known: Array, released: Array, cap: float) -> Cost:
    """Return the cost of a category with transition probabilities; missing is one more code.

    Missing on both sides does not count; missing on one side is a slip.
    """
    rows, columns = density.matrix.shape
    with np.errstate(divide="ignore"):
        log_p = np.log(density.matrix)
    table = np.full((rows + 1, columns + 1), cap)
    table[:rows, :columns] = np.minimum(log_p.max() - log_p, cap)
    table[rows, columns] = 0.0
    a, b = np.where(np.isnan(known), rows, known), np.where(np.isnan(released), columns, released)
    return Cost(CATEGORY, a, b, float(columns + 1), table=table.ravel())


def _tabulate(field: Field, cap: float) -> Cost | None:
    """Return the cost of a field with few distinct values, whatever its density; None if the table would be too large.

    Missing values are distinct values too: the field knows what they are worth.
    """
    (known, a), (released, b) = (np.unique(side, return_inverse=True) for side in (field.known, field.released))
    if len(known) * len(released) > MAX_TABLE_CELLS:
        return None
    log_p = replace(field, known=known, released=released).block(slice(None))
    highest = log_p.max()
    if not np.isfinite(highest):
        return None
    table = np.minimum(highest - log_p, cap)
    return Cost(CATEGORY, a.astype(float), b.astype(float), float(len(released)), table=table.ravel())


def normal_coordinates(fields: Sequence[Field]) -> tuple[Array, Array] | None:
    """Return both files in units of the noise if all fields are normal and complete, else None.

    The squared distance is then -2 log p.
    """
    units = np.array([field.density.sd for field in fields if isinstance(field.density, Normal)])
    if not fields or len(units) < len(fields) or not (units > 0).all():
        return None
    known, released = (np.column_stack([getattr(field, side) for field in fields]) for side in ("known", "released"))
    return None if np.isnan(known).any() or np.isnan(released).any() else (known / units, released / units)


def build_field_costs(fields: Sequence[Field], cap: float) -> FieldCosts | None:
    """Return the costs of the fields for `find_likeliest_links`; None if a density is of another kind."""
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
        elif type(density) not in ALL_OR_NOTHING:
            return None
        kinds.append(ALL_OR_NOTHING.get(type(density), MIXTURE))
        parts.append(components)
    if not fields:
        return None
    # Components that cost the cap never count, so they fill up the shorter mixtures.
    longest = max(map(len, parts))
    filled = [[*part, *[(cap, 0.0, 0.0)] * (longest - len(part))] for part in parts]
    sides = [_columns(field, kind) for field, kind in zip(fields, kinds, strict=True)]
    width = np.array([getattr(field.density, "width", 0.0) for field in fields])
    known, released = (np.column_stack([side[k] for side in sides]) for k in (0, 1))
    return FieldCosts(np.array(kinds), known, released, np.full(len(kinds), cap), width, np.array(filled))


def _columns(field: Field, kind: int) -> tuple[Array, Array]:
    """Return both sides of a field in a form that float32 can hold.

    Mixtures are centered at the median. Values that must be equal are replaced by codes of the distinct values.
    """
    if kind != SAME:
        middle = np.nanmedian(field.released) if kind == MIXTURE and not np.isnan(field.released).all() else 0.0
        return field.known - middle, field.released - middle
    both = np.concatenate([field.known, field.released])
    code = np.unique(both, return_inverse=True)[1].astype(float)
    code[np.isnan(both)] = np.nan
    return code[: len(field.known)], code[len(field.known) :]


def _highest_log_density(field: Field) -> float:
    """Return the maximum log density of a field, estimated on a sample of known records."""
    rows = np.linspace(0, len(field.known) - 1, min(DENSITY_SAMPLE_RECORDS, len(field.known))).astype(np.int64)
    top = float(field.block(rows).max())
    return top if np.isfinite(top) else 0.0
