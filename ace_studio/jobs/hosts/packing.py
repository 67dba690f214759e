"""Which files of a job go to a host, and what the user has to trust and allow before."""

import os
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from ace_studio.records import messages
from ace_studio.records.bundle import departure_of
from ace_studio.records.errors import Problem
from ace_studio.records.sending import Departure
from ace_studio.records.untrusted import untrusted_problem


def checked_departure(request: messages.TraceRequest) -> tuple[Departure, tuple[Problem, ...]]:
    """What a request would send to the host of its recipe, and what the user has to allow before.

    Raises: AceError(NOT_FOUND or UNSUPPORTED), OSError.
    """
    recipe, folder = request.recipe, Path(request.folder).absolute()
    most = 0 if is_no_project(folder) else None
    departure = departure_of(recipe, folder, recipe.engine.files, whole_folder_bytes=most, word=request.word)
    host = recipe.engine.host
    refused = departure.refusals(host, is_named=host in request.word.hosts, trusted=request.trusted_sha256)
    return departure, (*_untrusted_files(request, departure), *refused)


def _untrusted_files(request: messages.TraceRequest, departure: Departure) -> Iterator[Problem]:
    """What the request would send, and has to be trusted first: its code, and the model whatever it is."""
    model, host = Path(os.path.normpath(departure.folder / request.recipe.model.source)), request.recipe.engine.host
    for file in () if request.trust_all else departure.files:
        if file.name not in departure.named or not (file.name.suffix == ".py" or file.name == model):
            continue
        if (sha256 := file.sha256()) not in request.trusted_sha256:
            yield replace(
                untrusted_problem(file.name, sha256, ""),
                what=f"{file.name.name} has not been trusted",
                why=f"it would be sent to {host}, and what it holds of code would run there",
            )


def is_no_project(folder: Path) -> bool:
    """Whether a folder holds more than a model's own files: the home, what contains it, downloads, the desktop."""
    home = Path.home().resolve()
    return folder.resolve() in (home, *home.parents, home / "Downloads", home / "Desktop", home / "Documents")
