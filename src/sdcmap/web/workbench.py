"""What every route works on, typed, and the application that hands it over."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, FastAPI, Request

from sdcmap.web.drawing import Drawing
from sdcmap.web.shelf import Shelf
from sdcmap.web.sweeps import Sweeps
from sdcmap.web.workspace import Workspace

if TYPE_CHECKING:
    from sdcmap.web.views import Views


@dataclass(frozen=True)
class Workbench:
    """The served folder, and everything that is kept beside it."""

    room: Workspace
    sweeps: Sweeps
    drawing: Drawing
    shelf: Shelf
    releasing: threading.Lock = field(default_factory=threading.Lock)  # one release or renaming at a time

    @cached_property
    def views(self) -> Views:
        """What is asked again and again; numpy and polars are loaded with it."""
        from sdcmap.web.views import Views

        return Views(self.room)


class BenchApp(FastAPI):
    """An application that carries its workbench."""

    bench: Workbench


def _workbench(request: Request) -> Workbench:
    assert isinstance(request.app, BenchApp)
    return request.app.bench


Bench = Annotated[Workbench, Depends(_workbench)]
