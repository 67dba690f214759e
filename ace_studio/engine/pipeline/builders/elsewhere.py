"""A candidate that another process built: opened here from its artifact; its op reports come from that process."""

import shutil
import weakref
from collections.abc import Callable
from pathlib import Path

from ace_studio.engine.flow import CapturedModel
from ace_studio.engine.pipeline.builders.messages import Built
from ace_studio.engine.targets.base import Lowered, OpActual, Target
from ace_studio.engine.targets.shared.flat_call import FlatCall
from ace_studio.records.safe_file import link_or_copy


class BuiltElsewhere(Lowered):
    """Runs the saved artifact itself, opened by `Target.load`.

    Args:
        target: What it was built for.
        captured: What it was built from.
        built: The answer of the process that built it.
        threads: Threads that it may use.
        read_back: Asks that process; called at most once for each report.
        release: Tells it that nobody needs its build any more; called when this object goes.

    Raises: as `Target.load`.
    """

    def __init__(
        self,
        target: Target,
        captured: CapturedModel,
        built: Built,
        *,
        threads: int,
        read_back: Callable[[], list[OpActual]],
        release: Callable[[], object],
    ) -> None:
        self._path = Path(built.path)
        self._read_back = read_back
        self.runs_in_torch = built.runs_in_torch  # type: ignore[misc]  # a fact of the build here, not of the class
        self._call = FlatCall(captured).around(target.load(self._path, threads=threads))
        weakref.finalize(self, release).atexit = False

    def read_back(self) -> list[OpActual]:
        """The op reports of the process that built it."""
        return self._read_back()

    def save(self, folder: Path) -> Path:
        """Put the artifact into ``folder``, as hard links where the disk allows them."""
        shutil.copytree(self._path.parent, folder, dirs_exist_ok=True, copy_function=link_or_copy)
        return folder / self._path.name
