"""The sensitive variable that a measure is about."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from sdcmap.core import Microdata, RiskMeasure, Undefined


class SecretMeasure(RiskMeasure):
    """What the measures share that are about one sensitive variable, in their field `secret`: those who know nothing else
    take the keys of the file without it."""

    secret: str

    def secret_in(self, data: Microdata) -> str:
        """The variable that `secret` names, or the first sensitive one of the file."""
        return self.secret or next(iter(data.sensitive), "")

    def variables(self, data: Microdata) -> tuple[str, ...]:
        secret = "" if getattr(self, "on", ()) else self.secret_in(data)
        return tuple(name for name in super().variables(data) if name != secret)

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        kind, secret = type(self).__name__, self.secret_in(data)
        if not secret:
            yield f"{kind} has no sensitive variable: state one, or name it in `secret`."
        yield from self.unknown_columns(data, [secret] if secret else [])
        if secret in self.variables(data):
            yield f"{kind}.secret must not be one of the variables the snooper knows; {secret!r} is."


def check_comparable(people: Microdata, released: Microdata, secret: str) -> None:
    """Undefined where released values of the secret cannot be any person's, because they were recoded."""
    ours, theirs = people.column(secret).levels, released.column(secret).levels
    recoded = ours is not theirs
    if ours is not None and theirs is not None:
        mine, told = (set(levels.drop_nulls().cast(pl.String)) for levels in (ours, theirs))
        recoded = bool(mine and told) and mine.isdisjoint(told)
    if recoded:
        raise Undefined(f"{secret!r} was recoded, and nobody can say which released category each value went into.")
