"""The release check of missing values: enough people share each pattern of them that an attacker could know."""

from __future__ import annotations

import numpy as np

from sdcmap.bundle.checks import Check
from sdcmap.bundle.prepared_file import columns_with_drawn_missings, suppressed_cells
from sdcmap.core import Array, Method, Microdata
from sdcmap.data.missing_patterns import find_patterns, missing_state, missing_states
from sdcmap.study.profiles import Profile

MAX_PATTERNS_COMPARED = 1000  # rare patterns that are compared with all others, where suppressed values look missing


def check_missing_patterns(data: Microdata, method: Method, masked: Microdata, profile: Profile) -> Check:
    """Check that at least k units (of the profile) share each pattern of missing values that is released as it was.

    A unit is a person with all records, where the file has several of a person, else a household, or a record.
    A scientific-use file is only reported on. `masked` is in the order of the method's result, before rows are shuffled.
    """
    if not masked.paired:
        return Check("missing patterns", True, "No row belongs to a person, so no pattern of missing values does.")
    names = tuple(name for name in data.knowable if name in masked.names)
    names = tuple(name for name in names if data.missing(name).any() or masked.missing(name).any())
    if not names:
        return Check("missing patterns", True, "The columns that others could know have no missing values.")
    visible = np.column_stack([_visible_state(data, method, masked, name) for name in names])
    own = missing_states(data, names)
    own, units = (own, data.units) if masked.origin is None else (own[masked.origin], data.units[masked.origin])
    # where the released column tells no reasons, an attacker does not compare them
    own = np.where(visible.max(axis=0) > 1, own, np.minimum(own, 1))
    hides = np.array([_hides_suppressed(data, method, name) for name in names])
    exposed = _find_exposed(own, visible, units, hides, profile.k)
    unchanged = (own == visible).all(axis=0)
    if unchanged.any():
        hides_none = np.zeros(int(unchanged.sum()), bool)
        exposed |= _find_exposed(own[:, unchanged], visible[:, unchanged], units, hides_none, profile.k)
    what = "people" if data.case else "households" if data.household else "records"
    count = f"{int(exposed.sum()):,} of {len(masked):,} records"
    sentence = f"{count} have a pattern of missing values, as in the original, that fewer than {profile.k} {what} share"
    if not exposed.any() or profile.name == "scientific-use":
        return Check("missing patterns", True, f"{sentence}.")
    advice = "Mask the patterns (MaskMissing), or drop columns with many missing values."
    return Check("missing patterns", False, f"{sentence}. {advice}")


def _visible_state(data: Microdata, method: Method, masked: Microdata, name: str) -> Array:
    """Return the released state of each value. A value with the code of suppressed values was visibly not missing."""
    return np.where(suppressed_cells(data, method, masked, name), 0, missing_state(masked, name))


def _hides_suppressed(data: Microdata, method: Method, name: str) -> bool:
    """Return whether values of this column were suppressed that look like missing ones in the release."""
    suppresses = any(name in step.masks(data) for step in method.steps if step.missing == "added")
    return suppresses and name in columns_with_drawn_missings(data, method)


def _find_exposed(own: Array, visible: Array, units: Array, hides: Array, k: int) -> Array:
    """Return True for records with their own pattern of missing values, if fewer than k units could have had it.

    hides : the columns in which suppressed values look missing, so that a missing value may have been present.
    """
    patterns, code, count = find_patterns(visible, units)
    alike = count.copy()
    if hides.any():
        rare = np.flatnonzero(count < k)[:MAX_PATTERNS_COMPARED]
        for number in rare:
            pattern = patterns[number]
            possible = ((patterns == pattern) | (hides & (patterns == 1) & (pattern == 0))).all(axis=1)
            alike[number] = np.count_nonzero(np.bincount(units[possible[code]]))
    return np.asarray((alike[code] < k) & (own == visible).all(axis=1))
