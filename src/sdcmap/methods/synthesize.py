"""Synthetic data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np

from sdcmap.core import Array, Generator, Infeasible, Method, Range, Roles, Strengths, Trials
from sdcmap.core.method import Origin, StrengthScale
from sdcmap.data.microdata import Column, Microdata, smallest_unsigned, with_reasons
from sdcmap.data.missing_patterns import column_state
from sdcmap.data.schema import KINDS
from sdcmap.kernels.masking.rare_values import MIN_SHARING_RECORDS, replace_rare_codes, replace_rare_numbers
from sdcmap.kernels.masking.tails import MIN_UNITS_BEYOND, Tails, replace_tails
from sdcmap.methods import shuffle
from sdcmap.methods._adversarial_forest import draw_by_adversarial_forest
from sdcmap.methods._column_models import MODELS, Predictors, draw_column
from sdcmap.methods._kept_models import kept_incompatibilities, kept_problems, kept_terms
from sdcmap.methods._latent_variables import latent_scores, values_of_latent
from sdcmap.methods._visit_order import order_by_association
from sdcmap.methods.protect_tails import BIAS_NOT_STATED, tails_of, units_of

Model = Literal["trees", "regressions", "forest", "adversarial forest", "network", "copula"]
MODEL_LABELS: Mapping[Model, str] = {
    "trees": "CART",
    "regressions": "regressions in trees",
    "forest": "random forest",
    "adversarial forest": "adversarial random forest",
    "network": "Bayesian network",
    "copula": "Gaussian copula",
}
DRAWN_AT_ONCE = ("adversarial forest", "copula")  # models without an order of variables
REGRESSION_STRENGTHS = Strengths("leaf", 20, 500, fixed={"model": "regressions"})  # relations stay with large leaves
TREE_STRENGTHS = Strengths("leaf", 5, 200, fixed={"model": "trees"})
ADVERSARIAL_FOREST_STRENGTHS = Strengths("leaf", 5, 200, fixed={"model": "adversarial forest"})
NO_PREDICTOR = ("identifier", "drop", "case", "weight", "household")


@dataclass(frozen=True)
class Synthesize(Method):
    """Replace the values of some or all variables by draws from a model fitted to the file.

    Parameters
    ----------
    on : variables to replace, of any kind, in the order in which they are drawn (see `order`). If it names every variable
        except identifiers, weight and household, the file is fully synthetic: its rows do not correspond to original rows.
        The weight may be replaced too; otherwise each row keeps its own, which is then unrelated to the new values.
    given : unreplaced variables that the model uses as predictors; by default all except identifiers, weight and
        household.
    model : how values are drawn.
        "trees": one variable after the other, each from the leaf of a classification or regression tree on `given` and the
        variables drawn before. "regressions": each from a linear or logistic regression on these, with what it does not
        explain drawn from the leaf of a tree; keeps the relations that users study best. "forest": from a random leaf of a
        random forest. "network": from the records that share up to three parents in a Bayesian network. "adversarial
        forest": all at once, independently within the leaves of a forest that cannot tell original from drawn records; it
        has no predictors, so relations to variables that are not replaced are lost.
        "copula": all at once, from a normal regression between latent normal variables.
    leaf : the minimum number of records in a leaf, or that share the parents, at least 1. A value is drawn from at least
        that many. Not used by "copula".
    keep : regressions whose coefficients are kept, such as "log(wage) ~ educ + sex + educ:sex"; their terms join the model
        that the response is drawn from. The predictors come before the response. Only with "regressions".
    order : "stated": variables are drawn in the order of `on`. "association": those that say most about all others first,
        by the sum of Cramér's V, learned from groups of many records. Not with "copula" and "adversarial forest", which
        draw all at once, nor with `keep`, which needs predictors before the response.
    tails : numbers beyond the value of the `tails`-th largest (smallest) unit are drawn from a model of the tail, as by
        `ProtectTails`; at least 10. A unit is a person with all records or a household, by its extreme value; else a
        record.

    Formula: y_j ~ F_j(. | given, y_1, ..., y_(j-1)), F_j by a tree, a forest or a network; by regressions
        y_j = x b + e, e a residual of the leaf, or P(y_j = c) proportional to p_c(x) n_c/sum of p_c in the leaf; or
        y_j = F_j^-1(Phi(z_j)) with z ~ N(S b, C), and for categories the one with the largest z.
    Rare values would reveal that a person is in the file. The model is fitted to a file whose extreme numbers are replaced
    by quantiles of their tail; drawn numbers beyond a cut are replaced by random draws from the tail. Another drawn number
    that fewer than ten units have is replaced by a random number between the eighth value below and the eighth above it
    within the cuts, with the rounding of the column. A category
    that fewer than three units have is replaced by the nearest frequent one, or by any frequent one if nominal.
    Missing values are drawn too, each reason that the file states as one more category; whether and why a number is
    missing is drawn first, or whether it is missing is a variable of its own (copula, which draws the reason by its share).
    A reason that fewer than three units have is replaced as a category. Weights are not used in the model: each row counts
    once; drawn weights are scaled to the original total. Households are not used: each row keeps its own.
    Reference: Reiter (2005); Nowok, Raab, Dibben (2016); Breiman et al. (1984); Breiman (2001); Watson, Blesch, Kapar,
        Wright (2023); Zhang et al. (2017), networks; Sklar (1959).

    Examples
    --------
    >>> Synthesize(on=["wage", "age"], model="copula").text
    "Synthesize(on=['wage', 'age'], model='copula')"
    """

    label: ClassVar[str] = "Synthetic values"
    description: ClassVar[str] = (
        "Values are replaced by draws from a statistical model; if all variables are replaced, no row "
        "corresponds to a person."
    )

    kinds: ClassVar[tuple[str, ...]] = KINDS
    missing: ClassVar[str] = "category"
    weights: ClassVar[str] = (
        "not used in the model; each row keeps its weight, or weights are drawn and scaled to their total"
    )
    masks_weight: ClassVar[bool] = True
    households: ClassVar[str] = "not used; rows of one household are drawn independently, so they need not fit together"
    mixes_records: ClassVar[bool] = True
    kept: ClassVar[str] = (
        "the variables that are not replaced; of the others nothing exactly, and no number that fewer than ten persons "
        "or households had"
    )
    distorted: ClassVar[str] = (
        "all relations that the model does not represent; the largest and smallest numbers, of at least ten units at each "
        f"end: they are draws from a generalized Pareto tail beyond the cut, or an exponential one; {BIAS_NOT_STATED}"
    )
    searched: ClassVar[Strengths | None] = REGRESSION_STRENGTHS

    # 2: no values of one or two records, weights drawn; 3: no rare numbers; 4: grid; 5: eigenvectors; 6: tails; 7: units;
    # 8: nominal variables in a copula; 9: `keep`, which changes no file without it; 10: reasons of missing values drawn;
    # 11: `order`, which changes no file as stated; 12: repeated persons are units
    revision: ClassVar[int] = 12

    on: tuple[str, ...]
    given: tuple[str, ...] = ()
    model: Model = "trees"
    leaf: Annotated[int, Range(1)] = 5
    tails: Annotated[int, Range(MIN_UNITS_BEYOND)] = MIN_UNITS_BEYOND
    keep: tuple[str, ...] = ()
    order: Literal["stated", "association"] = "stated"

    @property
    def kept_models(self) -> tuple[str, ...]:
        return self.keep

    @property
    def action(self) -> str:
        least = "" if self.model == "copula" else f", at least {self.leaf} records per leaf"
        kept = f", keeps {len(self.keep)} stated model{'s' if len(self.keep) > 1 else ''}" if self.keep else ""
        ordered = ", ordered by association" if self.order == "association" else ""
        return f"synthesized ({MODEL_LABELS[self.model]}{least}{kept}{ordered})"

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        """Try the numbers alone, and every model on all columns."""
        trials: dict[str, Method | str] = {}
        if roles.numbers and len(roles.numbers) < len(roles.descriptive_columns):
            trials[f"{cls.__name__} numbers"] = cls(roles.numbers)
        if len(roles.descriptive_columns) > 1:
            trials |= {f"{cls.__name__} {model}": cls(roles.descriptive_columns, model=model) for model in MODEL_LABELS}
        return trials

    @classmethod
    def search_options(cls) -> Mapping[str, StrengthScale]:
        """Search regressions, trees, and adversarial forests of all columns. A copula has no strength to search."""

        def by_trees(strength: float, names: tuple[str, ...], roles: Roles) -> Method:
            return cls(names, **TREE_STRENGTHS.at(strength))

        def by_adversarial_forest(strength: float, names: tuple[str, ...], roles: Roles) -> Method | None:
            # without predictors, relations to columns that are not drawn would be lost
            draws_all = set(roles.descriptive_columns) <= set(names)
            return cls(names, **ADVERSARIAL_FOREST_STRENGTHS.at(strength)) if draws_all else None

        options: dict[str, StrengthScale] = {"trees": by_trees, "adversarial forest": by_adversarial_forest}
        return {**super().search_options(), **{f"{cls.__name__} {model}": own for model, own in options.items()}}

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        yield from shuffle.name_problems(self.on, self.given, "replaced")
        if self.model == "adversarial forest" and self.given:
            yield '.given must be empty with model = "adversarial forest", which draws all variables together.'
        if self.keep and self.model != "regressions":
            yield f'.keep needs model = "regressions"; model = "{self.model}" has no terms that could be kept.'
        if self.order == "association" and self.model in DRAWN_AT_ONCE:
            yield f'.order = "association" has no effect with model = "{self.model}", which draws all variables at once.'
        if self.order == "association" and self.keep:
            yield '.keep needs order = "stated": a model is kept only if its predictors are drawn before its response.'
        yield from kept_problems(self.keep, self.on)

    def _columns(self) -> tuple[str, ...]:
        return (*super()._columns(), *self.given)

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from super().incompatibilities(data)
        for name in self.given:
            if name in data.schema and data.schema[name].role in NO_PREDICTOR:
                yield f"Synthesize.given must not name {name!r}: it is the file's {data.schema[name].role}."
        yield from kept_incompatibilities(self.keep, data, (*self._predictors(data), *self.on))
        if self.model == "copula":
            yield from shuffle.predictor_problems(data, self, self._predictors(data))

    def _other_names(self, data: Microdata) -> tuple[str, ...]:
        """Return the variables that are not replaced, except identifiers, weight and household."""
        replaced = set(self.on)
        return tuple(v.name for v in data.schema.variables if v.role not in NO_PREDICTOR and v.name not in replaced)

    def _predictors(self, data: Microdata) -> tuple[str, ...]:
        if self.model == "adversarial forest":
            return ()
        return self.given or tuple(name for name in self._other_names(data) if name not in self.within)

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        if len(data) < 2:
            raise Infeasible("Synthesize needs at least 2 records.")
        numbers = [name for name in self.on if data.column(name).levels is None]
        tails = {name: own for name in numbers if (own := tails_of(data, name, self.tails)) is not None}
        # No drawn value and no split of a tree depends on how extreme the extreme values are.
        fitted = data.change(None, {name: replace_tails(data.numbers(name), own, None) for name, own in tails.items()})
        drawn = self._draw(fitted, rng)
        new = {name: self._as_released(data, name, own, tails.get(name), rng) for name, own in drawn.items()}
        return replace(_with_columns(data, new), paired=self.keeps_pairs(data) and data.paired)

    def keeps_pairs(self, data: Microdata) -> bool:
        return bool(self._other_names(data))

    def origins(self, data: Microdata, before: Mapping[str, Origin]) -> Mapping[str, Origin]:
        """Return "model" for drawn columns, but "donor" where few records of a leaf share the row's own values.

        A value from a leaf is that of another person, chosen independently of the row in a fully synthetic file. In a
        partly synthetic one, the leaf is that of the row's own values, so a small leaf gives back the own value.
        """
        few = self.model != "copula" and self.leaf < MIN_SHARING_RECORDS and bool(self._predictors(data))
        drawn: Origin = "donor" if few else "model"
        return {**before, **dict.fromkeys(self.on, drawn)}

    def _as_released(self, data: Microdata, name: str, drawn: Column, tails: Tails | None, rng: Generator) -> Column:
        """Return the drawn values without rare and extreme ones; weights are scaled to their original total."""
        new, column = _replace_rare_values(data, name, drawn.values, tails, rng), data.column(name)
        if name == data.weight and np.nansum(new):
            new = new * (np.nansum(column.values) / np.nansum(new))
        return _replace_rare_reasons(data, name, replace(drawn, values=new.astype(column.values.dtype)), rng)

    def _draw(self, fitted: Microdata, rng: Generator) -> dict[str, Column]:
        if self.model == "copula":
            return self._by_copula(fitted, rng)
        if self.model == "adversarial forest":
            return draw_by_adversarial_forest(fitted, self.on, self.leaf, rng)
        return self._by_columns(fitted, rng)

    def _by_copula(self, data: Microdata, rng: Generator) -> dict[str, Column]:
        """Draw all variables at once, from the latent variables of `latent_scores`."""
        modeled = [name for name in self.on if not data.missing(name).all()]
        columns = {name: data.column(name) for name in self.on}
        drawn = {name: own if name in modeled else _draw_reasons(own, rng) for name, own in columns.items()}
        scores = [data.view(latent_scores, name) for name in modeled]
        if not scores:
            return drawn
        given = data.view(shuffle.predictor_columns, self._predictors(data))
        z = shuffle.draw_given(np.concatenate(scores, axis=1), given, rng)
        end = np.cumsum([own.shape[1] for own in scores])
        for name, latent in zip(modeled, np.split(z, end[:-1], axis=1), strict=True):
            drawn[name] = values_of_latent(data, name, latent, rng)
        return drawn

    def _by_columns(self, data: Microdata, rng: Generator) -> dict[str, Column]:
        """Draw one variable after the other, each given the predictors and the variables drawn before."""
        model, drawn = MODELS[self.model](self.leaf), dict[str, Column]()
        # Models are fitted to the original predictors and asked for those of the new file.
        predictors = Predictors(data, regressors=self.model == "regressions")
        on = order_by_association(data, self.on) if self.order == "association" else self.on
        for name in (*self._predictors(data), *on):
            if name in self.on:
                kept = kept_terms(self.keep, name, data, _with_columns(data, drawn)) if self.keep else None
                own = predictors if kept is None else predictors.with_terms(kept)
                drawn[name] = draw_column(model, data, name, own, rng)
            predictors.add(name, drawn.get(name, data.column(name)))
        return drawn


def _with_columns(data: Microdata, columns: Mapping[str, Column]) -> Microdata:
    """Return the file with these columns, and their reasons for missing numbers, in place of its own."""
    with_drawn = with_reasons(data, {name: column.reasons for name, column in columns.items()})
    return with_drawn.change(None, {name: column.values for name, column in columns.items()})


def _draw_reasons(column: Column, rng: Generator) -> Column:
    """Return a column without any value, with reasons drawn by their shares if it has several."""
    several = len(np.unique(column_state(column))) > 1
    return column.take(rng.integers(len(column.values), size=len(column.values))) if several else column


def _replace_rare_values(data: Microdata, name: str, drawn: Array, tails: Tails | None, rng: Generator) -> Array:
    """Replace drawn values that few units have in the original, and numbers beyond the cuts."""
    column = data.column(name)
    original = _values_of_units(data, column.values)
    if column.levels is None:
        return drawn if tails is None else _replace_numbers(drawn, original, tails, rng)
    known, ordered = len(column.levels) - column.levels.null_count(), data.schema[name].kind == "ordinal"
    codes = replace_rare_codes(drawn.astype(np.int64), original, known, ordered, rng)
    return codes.astype(column.values.dtype)


def _replace_rare_reasons(data: Microdata, name: str, drawn: Column, rng: Generator) -> Column:
    """Replace drawn reasons of missing values that few units have by others, or by none where all reasons are rare."""
    states, state = _values_of_units(data, column_state(data.column(name))), column_state(drawn)
    missing, own = state > 0, states[states > 0]
    if not missing.any() or own.max() == 1:
        return drawn
    new = 1 + replace_rare_codes(state[missing] - 1, own - 1, int(own.max()), False, rng)
    new[np.bincount(own)[new] < MIN_SHARING_RECORDS] = 1
    if drawn.levels is None:
        reasons = np.zeros(len(state), dtype=np.int64)
        reasons[missing] = new - 1
        return replace(drawn, reasons=reasons.astype(smallest_unsigned(int(own.max()))))
    values = drawn.values.copy()
    values[missing] = len(drawn.levels) - drawn.levels.null_count() + new - 1
    return replace(drawn, values=values)


def _values_of_units(data: Microdata, values: Array) -> Array:
    """Return the values of a column, each once for a unit: a value that all records of a person share belongs to one."""
    units = units_of(data)
    if units is None:
        return values
    distinct, code = np.unique(values, return_inverse=True)
    return np.asarray(distinct[np.unique(units * len(distinct) + code) % len(distinct)])


def _replace_numbers(drawn: Array, original: Array, tails: Tails, rng: Generator) -> Array:
    """Replace drawn numbers beyond the cuts by draws from the tails, and rare ones by others within the cuts."""
    replaced, inside = replace_tails(drawn, tails, rng), tails.inside(drawn)
    replaced[inside] = replace_rare_numbers(drawn[inside], original[tails.inside(original)], rng)
    return replaced
