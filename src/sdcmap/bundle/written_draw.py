"""A draw of a method as users will get it: written, read back, and scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import polars as pl

from sdcmap.bundle.checks import Check
from sdcmap.bundle.limit_checks import score_file
from sdcmap.bundle.prepared_file import Prepared, as_written, prepare
from sdcmap.bundle.round_trip import align_with_original, check_round_trip, read_released
from sdcmap.core import Measure, Method, Microdata, SdcmapError, Stream
from sdcmap.files.writer import write as write_file
from sdcmap.study.jobs import ScoreRow


@dataclass(frozen=True, eq=False)
class WrittenDraw:
    """One draw: the masked data, the file prepared for writing, and the data as read back.

    stream : of the samples and refits by which the file is scored. Nothing of the study is used.
    """

    data: Microdata  # the original
    method: Method
    masked: Microdata
    prepared: Prepared
    back: Microdata
    round_trip: Check
    stream: Stream
    scores: dict[Measure, ScoreRow] = field(default_factory=dict)

    @staticmethod
    def write(data: Microdata, method: Method, stream: Stream, folder: Path) -> WrittenDraw:
        """Draw the method, write the file into `folder`, and read it back as a user would."""
        masked = as_written(data, method, method.apply(data, stream))
        prepared = prepare(data, method, masked, stream)
        path = folder / f"data.{data.schema.format}"
        try:
            write_file(prepared.data, path)
        except pl.exceptions.PolarsError as error:  # the text of the error may contain a value
            raise SdcmapError(f"{path.name} cannot be written ({type(error).__name__}).") from None
        back = read_released(path, prepared)
        round_trip = check_round_trip(prepared, back)
        return WrittenDraw(data, method, masked, prepared, back, round_trip, stream.child("release scores"))

    @cached_property
    def released(self) -> Microdata:
        """The data as read back, aligned with the original."""
        return align_with_original(self.data, self.back, self.prepared)

    def score(self, measures: Sequence[Measure]) -> list[ScoreRow]:
        """Score each measure of the written file once."""
        new = [measure for measure in measures if measure not in self.scores]
        rows = score_file(new, self.data, self.released, self.stream, self.method)
        self.scores.update(zip(new, rows, strict=True))
        return [self.scores[measure] for measure in measures]
