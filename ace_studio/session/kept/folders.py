"""The files and folders of the application for one user, all of them outside any project."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import platformdirs

from ace_studio.records.places import APP_NAME


@dataclass(frozen=True)
class UserFolders:
    """The files and folders of one user."""

    config: Path
    data: Path
    state: Path

    @classmethod
    def of_user(cls) -> UserFolders:
        """The standard folders of the platform for this user. Nothing is created."""
        return cls(
            config=platformdirs.user_config_path(APP_NAME, appauthor=False),
            data=platformdirs.user_data_path(APP_NAME, appauthor=False),
            state=platformdirs.user_state_path(APP_NAME, appauthor=False),
        )

    @classmethod
    def inside(cls, folder: Path) -> UserFolders:
        """All of them in one folder: for tests and for a portable archive."""
        return cls(config=folder / "config", data=folder / "data", state=folder / "state")

    @property
    def own(self) -> tuple[Path, ...]:
        """The folders that all of them lie in, where nobody else's file belongs."""
        return (self.config, self.data, self.state)

    @property
    def settings(self) -> Path:
        """The settings file."""
        return self.config / "settings.json"

    @property
    def devices(self) -> Path:
        """The list of devices to measure on."""
        return self.config / "devices.json"

    @property
    def trust(self) -> Path:
        """The list of trusted files."""
        return self.data / "trusted.json"

    @property
    def history(self) -> Path:
        """The database of past runs."""
        return self.data / "history.sqlite"

    @property
    def graphs(self) -> Path:
        """Graphs of past runs."""
        return self.data / "graphs"

    @property
    def runs(self) -> Path:
        """Where runs go if the user chose no other folder."""
        return self.data / "runs"

    @property
    def autosave(self) -> Path:
        """Unsaved choices of running windows, one file each."""
        return self.state / "autosave"


def new_run_folder(runs: Path, title: str) -> Path:
    """A new folder for a run, named by local time and model; it is not created."""
    first = runs / f"{datetime.now().astimezone():%Y-%m-%d-%H%M%S}-{Path(title).stem or 'run'}"
    others = (first.with_name(f"{first.name}-{number}") for number in range(2, 1000))
    return next(path for path in (first, *others) if not path.exists())
