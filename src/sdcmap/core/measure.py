"""The base class of measures: a risk or utility measure is a frozen value with `score(original, masked, rng)`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from numpy.random import Generator

from sdcmap.core.estimate import Estimate, EstimateColumns, merge_bounds, merge_skipped
from sdcmap.core.formatting import MAX_NAMES_IN_PHRASE, format_number, split_class_name
from sdcmap.core.method import Method
from sdcmap.core.refits import Refit, RefitRequest
from sdcmap.core.value import Value
from sdcmap.data.masked_batch import MaskedBatch
from sdcmap.data.microdata import Microdata
from sdcmap.data.schema import KINDS
from sdcmap.errors import ContractBroken, SchemaError, Undefined, did_you_mean
from sdcmap.kernels.arrays import Array

MIN_DRAWS_OF_EXPECTATION = 10  # fewer draws do not tell the standard error of their mean
MIN_DRAWS_NORMAL = 50  # from so many draws on, an interval uses the normal distribution, below Student's t
IsEnough = Callable[[float], bool]  # whether a partial value is enough to stop


class StoppedEarly(Exception):  # noqa: N818
    """A measure stopped before its end because its partial value is already decisive and can only get worse."""

    def __init__(self, value: float) -> None:
        super().__init__("The partial value is enough.")
        self.value = value


@dataclass(frozen=True)
class Measure(Value):
    """The base of every risk and utility measure.

    A subclass states its parameters as dataclass fields and its class data below, and implements `score`.
    """

    example: ClassVar[str] = "SmallCells"  # shown in error messages

    label: ClassVar[str] = ""  # the measure's name for people, at most 40 characters; fields may stand in braces
    description: ClassVar[str] = ""  # one sentence for a board: what the number means
    axis: ClassVar[Literal["risk", "utility"]]
    unit: ClassVar[str] = ""
    direction: ClassVar[Literal["lower", "higher"]] = "lower"  # which is better
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, None)  # of the value; None: unbounded
    baseline_value: ClassVar[float | None] = None  # the value when nothing is released; None: it has none
    floor: ClassVar[str] = "no better than without the release"  # what a risk at the baseline means
    # a function of an expectation: replicates are pooled by their parts, not averaged
    expectation: ClassVar[bool] = False
    has_release_value: ClassVar[bool] = False  # an expectation that is also defined given one released file
    sampled: ClassVar[bool] = False  # it draws random numbers
    paired: ClassVar[bool] = True  # it compares records with their originals, so it is undefined for synthetic files
    kinds: ClassVar[tuple[str, ...]] = KINDS  # of the variables that it measures
    missing: ClassVar[str] = "missing is a category of its own"
    weights: ClassVar[str] = "not used; every record counts once"
    households: ClassVar[str] = "not used; persons are counted one by one"
    texts_in_title: ClassVar[tuple[str, ...]] = ("on", "secret")  # parameters with texts that its title contains
    omitted_from_title: ClassVar[tuple[str, ...]] = ("held_out", "queries")  # parameters that its title leaves out
    growth: ClassVar[float] = 1.0  # its cost grows as this power of the number of records
    # expensive: a sweep leaves it out where another risk of the candidate exceeds its limit by more than this one can
    can_be_spared: ClassVar[bool] = False

    @property
    def title(self) -> str:
        """Return the label, what is measured, and the parameters that are not at their defaults.

        The title contains nothing that the spec does not contain.

        >>> import sdcmap as sm
        >>> sm.risk.LDiversity(secret="wage", on=["age", "sex"]).title, sm.SmallCells(n=5).title
        ('Groups with few sensitive values: wage', 'Unchanged records in small cells, n = 5')
        """
        spec = self.spec()
        label = self.label or split_class_name(type(self).__name__)
        subject = spec.get("secret") or spec.get("on", [])
        if isinstance(subject, str):
            label += f": {subject}"
        elif subject:
            label += f" on {', '.join(subject) if len(subject) <= MAX_NAMES_IN_PHRASE else f'{len(subject)} columns'}"
        plain = {
            name: part
            for name, part in spec.items()
            if type(part) in (int, float) and name not in self.omitted_from_title
        }
        return ", ".join([label, *(f"{name} = {format_number(part)}" for name, part in plain.items())])

    @property
    def value_unit(self) -> str:
        """The unit of the value with these parameters; by default that of the class."""
        return self.unit

    @property
    def error_variable(self) -> str:
        """The variable whose mean squared error the value is 1 over; "" for other measures.

        Such a value is shown as the typical error 1/sqrt(value), in the unit of the variable.
        """
        return ""

    def cost_ratio(self, few: int, rows: int) -> float:
        """Return the cost on `rows` records relative to that on `few` records."""
        return float((rows / few) ** self.growth) if few else 1.0

    def seconds(self, data: Microdata) -> float | None:
        """Return the approximate seconds on one core by a formula, or None: time the measure on a few records.

        A measure has a formula where a timed run would itself be expensive, or would not predict the cost of the whole
        file.
        """
        return None

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        """Return the measure's value for this masked file."""
        raise TypeError(f"{type(self).__name__} has no score.")

    def score_batch(self, original: Microdata, masked: MaskedBatch) -> EstimateColumns | None:
        """Return the values of several files, the same bit by bit as those of `score`; None: score each file on its own.

        A measure that is computed for thousands of small files may implement it, if it needs neither random numbers nor
        refits. Only a class that defines it itself uses it, because a subclass may have changed `score`.
        """
        return None

    def refits(self, masked: Microdata) -> RefitRequest | None:
        """Return who is left out of which refits of the method, where the measure needs refits; by default None.

        The caller that scores a method makes the refits and passes them to `apply`.
        """
        return None

    def score_refits(self, original: Microdata, refits: Sequence[Refit], rng: Generator) -> Estimate:
        """Return the measure's value from the refits that it requested."""
        raise TypeError(f"{type(self).__name__} requests no refits.")

    def score_until(self, original: Microdata, masked: Microdata, rng: Generator, enough: IsEnough) -> Estimate:
        """Return the score, or raise `StoppedEarly` as soon as a partial value is `enough` and can only get worse.

        By default the whole measure is computed.
        """
        return self.score(original, masked, rng)

    def apply(
        self, original: Microdata, masked: Microdata, rng: Generator, refits: Sequence[Refit] = (),
        enough: IsEnough | None = None,
    ) -> Estimate:  # fmt: skip
        """Return `score`, or `score_refits` where there are refits, after checking that the two files can be compared.

        Raises `StoppedEarly` where a partial value is `enough`.
        """
        if self.paired and not masked.paired:
            raise Undefined(f"{type(self).__name__} compares records with their originals; a synthetic file has none.")
        absent = [name for name in self.variables(original) if name in original.names and name not in masked.names]
        if absent:
            raise Undefined(f"the released file has no column {', '.join(map(repr, absent))}.")
        if refits:
            result = self.score_refits(original, refits, rng)
        elif enough is None:
            result = self.score(original, masked, rng)
        else:
            result = self.score_until(original, masked, rng, enough)
        return self._check_estimate(result)

    @property
    def can_score_batch(self) -> bool:
        """Whether this class scores several files together."""
        return "score_batch" in vars(type(self)) and not self.sampled and type(self).refits is Measure.refits

    def _check_estimate(self, result: object) -> Estimate:
        """Return the result of a score, or raise ContractBroken where it is not an Estimate."""
        if not isinstance(result, Estimate):
            kind = type(result).__name__
            raise ContractBroken(f"{type(self).__name__} returned {kind}, not an Estimate: return Estimate(value=...).")
        return result

    def for_informed_attacker(self, method: Method) -> Measure:
        """Return the measure for an attacker (or data user) who knows from the method note that `method` made the file.

        By default the method note makes no difference. Scores keep the name of the original measure.
        """
        return self

    def resample(self) -> Measure:
        """Return the same measure on another random sample, where it uses a sample; by default itself.

        A release is compared with its limits on a new sample, so that no candidate is chosen by the sample that judges it.
        """
        return self

    def release_variant(self) -> Measure:
        """Return the measure as the release checks use it: on a new sample, and with more refits; by default `resample()`.

        Its value is stored under the name of this measure.
        """
        return self.resample()

    def release_error(self, estimate: Estimate) -> float:
        """Return the standard error that `release_variant` is expected to have, given an estimate of this measure.

        By default it is the error of the estimate, and 0 where the value is exact for one file.
        """
        return 0.0 if estimate.spread is not None else estimate.se or 0.0

    def describe_parts(self, estimate: Estimate) -> str:
        """Return a sentence for the board about a part that no limit is compared with; empty if there is none."""
        return ""

    def error_at_baseline(self, data: Microdata, rows: int | None = None) -> float | None:
        """Return the standard error to expect for a release of these data from which no more than `baseline` is learned.

        rows : the number of records, if the file were larger. 0: the value has no error. None: it is not known before the
        measure is computed.
        """
        return None if self.sampled or self.expectation else 0.0

    def screening_variant(self, data: Microdata) -> Measure:
        """Return a cheaper measure that ranks candidates for these data in nearly the same order; by default itself.

        A search screens candidates with it.
        """
        return self

    def pool(self, estimates: Sequence[Estimate]) -> Estimate:
        """Return the value of a method from the estimates of its replicates; by default their mean."""
        count = len(estimates)
        if count < 2:
            return estimates[0]
        mean = math.fsum(e.value for e in estimates) / count
        if not math.isfinite(mean):
            return Estimate(value=mean)
        # the variance between replicates; `fsum` makes it independent of their order
        spread = math.fsum((e.value - mean) ** 2 for e in estimates) / (count - 1)
        bounds, skipped = merge_bounds(estimates), merge_skipped(estimates)
        df = degrees_of_freedom(count) if self.expectation else None
        return Estimate(value=mean, se=math.sqrt(spread / count), df=df, bounds=bounds, skipped=skipped)

    def pool_draws(self, estimates: Sequence[Estimate], *, is_random: bool) -> Estimate:
        """Return `pool`, with the error of an expectation that has only one draw.

        The single result of a method without randomness is exact. One draw of a random method says nothing about the error
        of an expectation, so its standard error is infinite, and it meets no limit.
        """
        pooled = self.pool(estimates)
        if not self.expectation or len(estimates) > 1:
            return pooled
        return replace(pooled, se=math.inf if is_random else None)

    def draws_needed(self, level: float) -> int:
        """Return how many draws of a random method a decision needs at this confidence level; 1: one file is enough."""
        return MIN_DRAWS_OF_EXPECTATION if self.expectation else 1

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """Return the measure of each record, where the measure has a record-level form."""
        raise Undefined(f"{type(self).__name__} has no record-level form.")

    def baseline(self, original: Microdata) -> float | None:
        """Return the value when nothing is released. It may depend on the data, such as a prior probability."""
        return self.baseline_value

    def variables(self, data: Microdata) -> tuple[str, ...]:
        """Return the names of the measured variables: the field `on`, or a default of the measure."""
        on = getattr(self, "on", ())
        return (on,) if isinstance(on, str) else tuple(on)

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        """Yield every reason why this measure does not fit these data, one sentence each."""
        yield from data.schema.unsupported_roles("wave")
        names = self.variables(data)
        if not names:
            yield f"{self.text} has no variables to measure: state keys or numeric variables, or name them in `on`."
        for name in names:
            if name not in data.schema:
                yield f"{type(self).__name__}: no column {name!r}.{did_you_mean(name, data.names)}"
            elif data.schema[name].kind not in self.kinds:
                kinds = " and ".join(self.kinds)
                yield f"{type(self).__name__} measures {kinds} variables; {name!r} is {data.schema[name].kind}."

    def check_variables(self, data: Microdata) -> tuple[str, ...]:
        """Return `variables`, or raise SchemaError with every incompatibility. The result is cached with the file."""
        return data.remember(("variables", self.digest), lambda: self._find_variables(data))

    def _find_variables(self, data: Microdata) -> tuple[str, ...]:
        if problems := list(self.incompatibilities(data)):
            raise SchemaError(" ".join(problems))
        return self.variables(data)


def degrees_of_freedom(draws: int) -> float | None:
    """Return the degrees of freedom of a standard error between draws; None: it is taken as known."""
    return None if draws >= MIN_DRAWS_NORMAL else draws - 1
