"""Which files of a job go to a host, and which of them the user has to trust before."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from ace_studio.records import messages
from ace_studio.records.bundle import Bundle, bundle_of, named_files
from ace_studio.records.errors import Problem
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.records.safe_file import file_sha256
from ace_studio.records.untrusted import untrusted_problem


def untrusted_files(request: messages.AnyRequest) -> tuple[Problem, ...]:
    """What the request would send, and has to be trusted first: its code, and the model whatever it is."""
    if not isinstance(request, messages.TraceRequest) or request.trust_all:
        return ()
    folder, host = Path(request.folder).absolute(), request.recipe.engine.host
    model = folder / request.recipe.model.source
    files = {path for path in named_files(request.recipe, folder) if path.suffix == ".py" or path == model}
    why = f"it would be sent to {host}, and what it holds of code would run there"
    hashes = {path: file_sha256(path) for path in sorted(files)}
    return tuple(
        replace(untrusted_problem(path, sha256, ""), what=f"{path.name} has not been trusted", why=why)
        for path, sha256 in hashes.items()
        if sha256 not in request.trusted_sha256
    )


def files_to_send(recipe: Recipe, folder: Path) -> tuple[Bundle, dict[str, Path]]:
    """The bundle of a recipe, and where the content of each hash lies here.

    Raises: AceError(NOT_FOUND or UNSUPPORTED), OSError.
    """
    return bundle_of(recipe, folder, recipe.engine.files, whole_folder_bytes=0 if is_no_project(folder) else None)


def is_no_project(folder: Path) -> bool:
    """Whether a folder holds more than a model's own files: the home, what contains it, downloads, the desktop."""
    home = Path.home()
    return folder in (home, *home.parents, home / "Downloads", home / "Desktop", home / "Documents")
