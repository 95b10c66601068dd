"""What every route works on, and the application that provides it as a dependency."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, FastAPI, Request

from sdcmap.web.renderer import Renderer
from sdcmap.web.study_store import StudyStore
from sdcmap.web.sweeps import Sweeps
from sdcmap.web.workspace import Workspace

if TYPE_CHECKING:
    from sdcmap.web.views import Views


@dataclass(frozen=True)
class Workbench:
    """The served folder, and the services over it."""

    workspace: Workspace
    sweeps: Sweeps
    renderer: Renderer
    store: StudyStore
    release_lock: threading.Lock = field(default_factory=threading.Lock)  # one release or renaming at a time

    @cached_property
    def views(self) -> Views:
        """The caches of data and maps; they are loaded late because they import numpy and polars."""
        from sdcmap.web.views import Views

        return Views(self.workspace)


class BenchApp(FastAPI):
    """An application that carries its workbench."""

    bench: Workbench


def _workbench(request: Request) -> Workbench:
    assert isinstance(request.app, BenchApp)
    return request.app.bench


Bench = Annotated[Workbench, Depends(_workbench)]
