"""The cheapest links by what pairs cost, every pair looked at; ties stand by the lower row."""

from __future__ import annotations

from collections.abc import Sequence

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.device import on_device
from sdcmap.kernels.linking.costs import Cost, block_costs, mean_costs
from sdcmap.kernels.linking.links import block_links


@on_device
def cost_links(
    costs: Sequence[Cost], keep: int, *, mean: bool = False, known_rows: bool = False
) -> tuple[Array, Array]:
    """The `keep` cheapest known records of each released one, or, where `known_rows`, the other way round: rows and minus
    the costs, best first. mean: over the fields that both have, in place of the sum."""
    known, released = len(costs[0].known), len(costs[0].released)
    block = mean_costs if mean else block_costs
    if known_rows:
        return block_links(lambda rows: -block(costs, rows), known, released, keep)
    return block_links(lambda rows: -block(costs, slice(None), rows).T, released, known, keep)
