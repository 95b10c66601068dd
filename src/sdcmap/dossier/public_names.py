"""Names of methods and measures that may leave the room: those that name a file go by its role, and rare categories that
they merge unnamed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import polars as pl

from sdcmap.core.method import Method
from sdcmap.core.outside import MERGED, Outside
from sdcmap.core.rule import Choice
from sdcmap.core.value import decode
from sdcmap.data.microdata import Microdata
from sdcmap.study.plan import Plan
from sdcmap.study.scores import Scores

Words = TypeVar("Words")
UNTOLD = ("sha256=", f"{MERGED}=")  # of a text that names a file, or categories


@dataclass(frozen=True)
class Names:
    """Each text that names a file or categories -> the text that is told; none inside."""

    told: dict[str, str] = field(default_factory=dict)
    outside: Outside = field(default_factory=Outside)

    def __call__(self, words: Words) -> Words:
        """The words, and those in lists and tables, as they are told."""
        if isinstance(words, str):
            return self._text(words)  # type: ignore[return-value]
        if isinstance(words, Mapping):
            return {self(name): self(part) for name, part in words.items()}  # type: ignore[return-value]
        if isinstance(words, list | tuple):
            return type(words)(map(self, words))
        return words

    def _text(self, words: str) -> str:
        for text, told in self.told.items():
            words = words.replace(text, told).replace(repr(text)[1:-1], repr(told)[1:-1])
        return words

    def scores(self, scores: Scores) -> Scores:
        """The same numbers under the names that are told."""
        if not self.told:
            return scores
        return replace(
            scores,
            candidate=scores.candidate.with_columns(pl.col("method").replace(self.told)),
            score=scores.score.with_columns(pl.col("measure").replace(self.told)),
            measure=scores.measure.with_columns(pl.col("name").replace(self.told)),
            values={self(name): measure for name, measure in scores.values.items()},
            methods={self(name): self._method(method) for name, method in scores.methods.items()},
        )

    def _method(self, method: Method) -> Method:
        return decode(self.outside.spec(method.spec()), Method) if method.text in self.told else method

    def choice(self, choice: Choice) -> Choice:
        words = self(choice.method), self(choice.reason), self(choice.runners_up)
        return replace(choice, method=words[0], reason=words[1], runners_up=words[2])


def public_names(plan: Plan, scores: Scores, data: Microdata) -> Names:
    """What is told of every method and measure of a plan and its scores."""
    outside = Outside(data)
    values = [*plan.expanded, *plan.measures, *scores.methods.values(), *scores.values.values()]
    texts = {value.text: value for value in values}
    named = {text: outside.text(value) for text, value in texts.items() if any(part in text for part in UNTOLD)}
    return Names(dict(sorted(named.items(), key=lambda pair: -len(pair[0]))), outside)
