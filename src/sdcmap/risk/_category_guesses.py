"""Beliefs about a category or about the identity of a target's record, and the loss of the best guess.

A guess is a category (or a record) under 0-1 loss, and a distribution under log and Brier loss. Trottini (2001), par. 18:
the intruder wants the owner of a record, or a confidential category of a person.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from sdcmap.core import Array, Method, Microdata, SchemaError, Undefined
from sdcmap.core.likelihood import Field, Same
from sdcmap.data.cells import common_codes
from sdcmap.kernels.tables.coding import compress
from sdcmap.risk._beliefs import LinkWeights, find_released_rows

CATEGORY_LOSSES = ("zero-one", "log", "brier")
MAX_LIKELIHOODS = 1 << 22  # pairs of patterns of one stratum; beyond, values are believed as they stand
TIE = 1e-12  # relative difference below which two probabilities are equal


class Losses(NamedTuple):
    """For each original record: the loss that the agency expects of the intruder's guess, and that the intruder expects."""

    agency: Array
    intruder: Array


# ---- losses of a distribution on categories -------------------------------------------------------------------
def intruder_loss(word: str, shares: Array) -> Array:
    """Return the uncertainty of each row of probabilities: 1 - max p, the entropy, or 1 - sum p^2."""
    if word == "zero-one":
        return np.asarray(1 - shares.max(axis=1))
    if word == "log":
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(-np.where(shares > 0, shares * np.log(shares), 0.0).sum(axis=1))
    return np.asarray(1 - (shares**2).sum(axis=1))


def agency_loss(word: str, shares: Array, truth: Array) -> Array:
    """Return the loss of the best guess of each row, given the true category; of equally likely guesses, their mean."""
    of_truth = shares[np.arange(len(shares)), truth]
    if word == "zero-one":
        is_best = shares >= shares.max(axis=1, keepdims=True) * (1 - TIE)
        return np.asarray(1 - is_best[np.arange(len(shares)), truth] / is_best.sum(axis=1))
    if word == "log":
        with np.errstate(divide="ignore"):
            return np.asarray(-np.log(of_truth))
    return np.asarray((shares**2).sum(axis=1) - 2 * of_truth + 1)


# ---- a category of the target ---------------------------------------------------------------------------------
def category_shares(data: Microdata, name: str, weights: Array | None = None) -> dict[str, float]:
    """Return the share of each category of a variable, by its text, without missing values."""
    levels = data.column(name).levels
    if levels is None:
        raise SchemaError(f"{name!r} is numeric; its categories have no shares.")
    known = ~data.missing(name)
    kept = None if weights is None else weights[known]
    count = np.bincount(data.codes(name)[known], kept, minlength=len(levels))
    if not count.sum() > 0:
        raise Undefined(f"{name!r} has no value that is not missing.")
    words = levels.cast(pl.String).to_list()
    return {word: float(one / count.sum()) for word, one in zip(words, count, strict=True) if word is not None}


def prior_vector(data: Microdata, name: str, shares: dict[str, float]) -> Array:
    """Return the prior probability of each category code of the file; the last entry has all categories it lacks."""
    levels = data.column(name).levels
    words = [] if levels is None else levels.cast(pl.String).to_list()
    vector = np.array([0.0 if word is None else shares.get(word, 0.0) for word in words] + [0.0])
    vector[-1] = max(0.0, 1 - vector.sum())
    return vector


def category_losses(
    original: Microdata,
    masked: Microdata,
    name: str,
    method: Method | None,
    links: LinkWeights,
    prior: Array,
    word: str,
) -> Losses:
    """Return the losses of an intruder who links records: the belief mixes the linked records and the prior."""
    pattern, beliefs = _beliefs_of_records(original, masked, name, method, prior)
    # what each released group implies: the mean over its records
    implied = np.zeros((len(links.released_size), len(prior)))
    np.add.at(implied, links.released_group, beliefs[pattern])
    implied /= links.released_size[:, None]
    shares = (1 - links.share)[:, None] * prior
    np.add.at(shares, links.source, links.weight[:, None] * implied[links.target])
    is_known = ~original.missing(name)
    truth = np.where(is_known, original.codes(name), 0)
    own = links.to_records(intruder_loss(word, shares), float(intruder_loss(word, prior[None, :])[0]))
    each = shares[np.maximum(links.group, 0)] if len(shares) else np.tile(prior, (len(truth), 1))
    each = np.where((links.group >= 0)[:, None], each, prior)
    agency = agency_loss(word, each, truth)
    return Losses(np.where(is_known, agency, np.nan), np.where(is_known, own, np.nan))


def _beliefs_of_records(
    original: Microdata, masked: Microdata, name: str, method: Method | None, prior: Array
) -> tuple[Array, Array]:
    """Return what each released record says about the category of its owner: its pattern, and the belief by pattern.

    An unmasked category is believed as it stands. So is a masked one whose method is not known or states no likelihood. A
    category that only the release has, such as one that merges others, leaves the prior among those it was made from. A
    missing one leaves the prior.
    """
    if method is not None and name in method.masked_names:
        try:
            return _by_likelihood(original, masked, name, method, prior)
        except (Undefined, SchemaError):
            pass
    n, size = len(original), len(prior)
    codes = common_codes(original, masked, name)[n:].astype(np.int64)
    is_missing = masked.missing(name)
    codes = np.where(is_missing, -1, codes)
    codes, pattern = np.unique(codes, return_inverse=True)
    beliefs = np.zeros((len(codes), size))
    for row, code in enumerate(codes):
        if code < 0:
            beliefs[row] = prior
        elif code < size - 1:
            beliefs[row, code] = 1.0
        else:
            beliefs[row] = _among(prior, _sources(original, masked, name, np.flatnonzero(pattern == row)))
    return pattern, beliefs


def _sources(original: Microdata, masked: Microdata, name: str, rows: Array) -> Array:
    """Return the original codes of the people behind these released rows, each once."""
    released = find_released_rows(original, masked)
    people = np.flatnonzero(np.isin(released, rows) & ~original.missing(name))
    return np.unique(original.codes(name)[people]).astype(np.int64)


def _among(prior: Array, codes: Array) -> Array:
    """Return the prior among these codes only."""
    belief = np.zeros(len(prior))
    belief[codes] = prior[codes] if prior[codes].sum() > 0 else 1.0
    return belief / belief.sum() if belief.sum() > 0 else prior


def _by_likelihood(
    original: Microdata, masked: Microdata, name: str, method: Method, prior: Array
) -> tuple[Array, Array]:
    """Return the posterior by Bayes' rule, from the likelihood that the method note states."""
    rows = np.flatnonzero(~original.missing(name))
    kept = [column for column in original.names if column == name or column not in method.masked_names]
    part = original.only(kept).take(rows)
    known = Microdata(part.schema, part.columns)
    fields = method.log_likelihood(known, masked)
    if not fields:
        raise Undefined("the method states no likelihood.")
    level = known.codes(name).astype(np.int64)
    # fields that must be equal divide the records into strata
    equal = [np.unique(np.concatenate([f.known, f.released]), return_inverse=True)[1] for f in fields if _is_same(f)]
    stratum = compress(equal)[0] if equal else np.zeros(len(known) + len(masked), dtype=np.int64)
    noisy = [field for field in fields if not _is_same(field)]
    ours, theirs = stratum[: len(known)], stratum[len(known) :]
    released_key = compress([theirs, *(_rank(field.released) for field in noisy)])[0]
    known_key = compress([ours, level, *(_rank(field.known) for field in noisy)])[0]
    first_released, first_known = (np.unique(key, return_index=True)[1] for key in (released_key, known_key))
    beliefs = np.tile(prior, (len(first_released), 1))
    is_missing = masked.missing(name)
    for one in np.unique(theirs):
        here = np.flatnonzero((theirs[first_released] == one) & ~is_missing[first_released])
        sources = first_known[ours[first_known] == one]
        if not len(here) or not len(sources):
            continue
        if len(here) * len(sources) > MAX_LIKELIHOODS:
            raise Undefined("the likelihood has too many states.")
        log_p = sum(f.pairs(sources[None, :], first_released[here][:, None]) for f in noisy)
        log_p = np.broadcast_to(np.asarray(log_p, dtype=float), (len(here), len(sources)))
        # of several known patterns with the same category, the likeliest counts
        best = np.full((len(prior), len(here)), -np.inf)
        np.maximum.at(best, level[sources], log_p.T)
        top = best.max(axis=0)
        with np.errstate(invalid="ignore"):
            posterior = prior[:, None] * np.exp(best - top)
        possible = np.isfinite(top) & (np.nan_to_num(posterior).sum(axis=0) > 0)
        beliefs[here[possible]] = (posterior[:, possible] / posterior[:, possible].sum(axis=0)).T
    return released_key, beliefs


def _is_same(field: Field) -> bool:
    return isinstance(field.density, Same)


def _rank(values: Array) -> Array:
    return np.unique(values, return_inverse=True)[1]


# ---- the identity of the target's record ----------------------------------------------------------------------
def identity_prior(word: str, records: int, inclusion: float) -> float:
    """Return the uncertainty about which of so many records is the target's, if all are equally likely."""
    each, outside = inclusion / records, 1 - inclusion
    if word == "zero-one":
        return 1 - each
    if word == "log":
        return -inclusion * float(np.log(each)) - (outside * float(np.log(outside)) if outside > 0 else 0.0)
    return 1 - records * each**2 - outside**2


def identity_losses(original: Microdata, masked: Microdata, links: LinkWeights, word: str) -> Losses:
    """Return the losses of an intruder who wants to know which released record is the target's.

    A linked record has its weight, and what no link has is spread over all records. With probability 1 - inclusion the
    target is in none. Under 0-1 loss the guess is a record; of equally likely ones, each is guessed equally often.
    """
    records, groups = len(masked), links.groups
    size, outside = links.released_size, 1 - links.inclusion
    rest = np.maximum(links.inclusion - links.share, 0.0) / records  # of each record, for each known group
    each = links.weight / size[links.target] + rest[links.source]  # probability of each record of a link
    row = find_released_rows(original, masked)
    truth = np.where(row >= 0, links.released_group[np.maximum(row, 0)], -1)  # released group of each target
    # the link of each target to its own group, if there is one
    key = links.source * len(size) + links.target
    own_key = np.where((links.group >= 0) & (truth >= 0), links.group * len(size) + truth, -1)
    at = np.minimum(np.searchsorted(key, own_key), max(len(key) - 1, 0))
    is_linked = (key[at] == own_key) & (own_key >= 0) if len(key) else np.zeros(len(row), dtype=bool)
    alone = links.inclusion / records  # of a record for targets that the intruder does not have in their file
    of_truth = np.where(is_linked, each[at] if len(key) else 0.0, links.to_records(rest, alone))
    of_truth = np.where(row >= 0, of_truth, outside)
    unlinked = records - np.bincount(links.source, size[links.target], minlength=groups)
    if word == "zero-one":
        top = np.zeros(groups)
        np.maximum.at(top, links.source, each)
        top = np.maximum(top, np.where(unlinked > 0, rest, 0.0))
        is_best = each >= top[links.source] * (1 - TIE)
        best = np.bincount(links.source, np.where(is_best, size[links.target], 0), minlength=groups)
        best += np.where((rest >= top * (1 - TIE)) & (unlinked > 0), unlinked, 0)
        is_hit = (row >= 0) & (of_truth >= links.to_records(top, alone) * (1 - TIE))
        hit = np.where(is_hit, 1 / links.to_records(np.maximum(best, 1), records), 0.0)
        return Losses(1 - hit, 1 - links.to_records(top, alone))
    terms = _entropy_terms if word == "log" else _squares
    total = np.bincount(links.source, size[links.target] * terms(each), minlength=groups)
    total = total + unlinked * terms(rest) + terms(np.array([outside]))[0]
    own = links.to_records(total if word == "log" else 1 - total, identity_prior(word, records, links.inclusion))
    if word == "log":
        with np.errstate(divide="ignore"):
            return Losses(-np.log(of_truth), own)
    squares = links.to_records(total, records * alone**2 + outside**2)
    return Losses(squares - 2 * of_truth + 1, own)


def _entropy_terms(p: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return -np.where(p > 0, p * np.log(p), 0.0)


def _squares(p: Array) -> Array:
    return np.asarray(p**2)
