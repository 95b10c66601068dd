"""The base of the measures about one sensitive variable."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from sdcmap.core import Microdata, RiskMeasure, Undefined


class SecretMeasure(RiskMeasure):
    """Base of the measures about one sensitive variable, named in the field `secret`.

    If `on` names no variables, the attacker knows the keys of the file without the sensitive variable.
    """

    secret: str

    def secret_in(self, data: Microdata) -> str:
        """Return the variable that `secret` names, or the first sensitive variable of the file."""
        return self.secret or next(iter(data.sensitive), "")

    def variables(self, data: Microdata) -> tuple[str, ...]:
        secret = "" if getattr(self, "on", ()) else self.secret_in(data)
        return tuple(name for name in super().variables(data) if name != secret)

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        kind, secret = type(self).__name__, self.secret_in(data)
        if not secret:
            yield f"{kind} needs a sensitive variable: give one that role, or name it in `secret`."
        yield from self.unknown_columns(data, [secret] if secret else [])
        if secret in self.variables(data):
            yield f"{kind}.secret must not be one of the variables the attacker knows; {secret!r} is."


def check_comparable(people: Microdata, released: Microdata, secret: str) -> None:
    """Raise `Undefined` if the released values of the secret cannot be compared with true ones because of recoding."""
    ours, theirs = people.column(secret).levels, released.column(secret).levels
    recoded = ours is not theirs
    if ours is not None and theirs is not None:
        true, released_labels = (set(levels.drop_nulls().cast(pl.String)) for levels in (ours, theirs))
        recoded = bool(true and released_labels) and true.isdisjoint(released_labels)
    if recoded:
        raise Undefined(f"{secret!r} was recoded, and the released category of each value is not known.")
