"""What a job needs on another machine: files by the hash of their content, and the recipe that names them."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec

from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.private_folder import private_folder
from ace_studio.records.recipes.paths import relative_to, with_paths
from ace_studio.records.recipes.recipe import Recipe
from ace_studio.records.safe_file import file_sha256, leads_out, link_or_copy, write_atomically
from ace_studio.records.sending import Departure, LeavingFile, SendVerdict, Word, leaving
from ace_studio.records.shards import with_shards

WHOLE_FOLDER_BYTES = 500_000_000
"""A recipe's folder up to this size travels whole; of a larger one its Python code and what the recipe names."""
MOST_BYTES = 4_000_000_000
MOST_FILES = 20_000


class BundledFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One file of a bundle."""

    path: str
    """Relative to the root of the bundle, with forward slashes."""
    sha256: str
    size: int
    is_decisive: bool = True
    """Whether the recipe or a pattern names it, or it is code; what lies beside them, such as a log, may change."""


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a job, and its recipe with paths inside of them."""

    recipe: Recipe
    folder: str
    """Folder of the recipe, relative to the root."""
    files: tuple[BundledFile, ...]
    key: str
    """SHA-256 of the recipe, of the files that it names or that patterns match, and of the code. What else lies in the
    folder, such as notes and the file of the sweep, may change without a job being another."""


def departure_of(
    recipe: Recipe,
    folder: Path,
    patterns: Sequence[str] = (),
    *,
    whole_folder_bytes: int | None = None,
    word: Word | None = None,
) -> Departure:
    """What a job of a recipe needs of this machine's files, with the verdict on each.

    That is what the recipe names, the Python code beside it, what ``patterns`` match, and everything else in its folder
    up to ``whole_folder_bytes`` (None: `WHOLE_FOLDER_BYTES`). Hidden folders, environments, caches and results of runs
    are left out, and so is what only lies beside and may not go.

    Raises: AceError(UNSUPPORTED) if that is more than `MOST_BYTES` or `MOST_FILES`; AceError(NOT_FOUND) for a pattern
    without a file; OSError if a file is gone meanwhile.
    """
    folder = folder.absolute()
    named = {Path(os.path.normpath(path)) for path in (*named_files(recipe, folder), *_matched(folder, patterns))}
    below = set(_files_below(folder, most=MOST_FILES))
    files = leaving(sorted(named | below), folder, word)
    most = WHOLE_FOLDER_BYTES if whole_folder_bytes is None else whole_folder_bytes
    is_small = sum(file.size for file in files if file.name in below) <= most
    chosen = [file for file in files if is_small or file.name in named or file.name.suffix == ".py"]
    going = [file for file in chosen if file.name in named or file.verdict is SendVerdict.GOES]
    size = sum(file.size for file in going)
    if size > MOST_BYTES or len(going) > MOST_FILES:
        raise AceError.of(
            ErrorCode.UNSUPPORTED,
            f"The files of the job are too many to send: {len(going):,} files, {size / 1e9:.1f} GB",
            why=f"at most {MOST_FILES:,} files and {MOST_BYTES / 1e9:.0f} GB travel",
            remedy="Name fewer files, put the model into a folder of its own, or run it where the files are.",
            where=str(folder),
        )
    stays = tuple(file for file in chosen if file.name not in named and file.verdict is not SendVerdict.GOES)
    return Departure(folder=folder, files=tuple(going), stays=stays, named=frozenset(named))


def bundle_of(
    recipe: Recipe, departure: Departure, *, digest: Callable[[LeavingFile], str] = LeavingFile.sha256
) -> tuple[Bundle, dict[str, LeavingFile]]:
    """The bundle of a recipe with these files, and which of them has the content of each hash. Raises: OSError."""
    folder = departure.folder
    root = Path(os.path.commonpath([folder, *(file.name.parent for file in departure.files)]))
    files = {
        one: BundledFile(
            path=one.name.relative_to(root).as_posix(),
            sha256=digest(one),
            size=one.size,
            is_decisive=one.name in departure.named or one.name.suffix == ".py",
        )
        for one in departure.files
    }
    inside = with_paths(recipe, lambda text: relative_to(Path(text), folder) if Path(text).is_absolute() else text)
    decisive = [file for file in files.values() if file.is_decisive]
    key = sha256(msgspec.json.encode((inside, decisive))).hexdigest()
    bundle = Bundle(recipe=inside, folder=folder.relative_to(root).as_posix(), files=tuple(files.values()), key=key)
    return bundle, {file.sha256: one for one, file in files.items()}


def missing(bundle: Bundle, store: Path) -> tuple[str, ...]:
    """Hashes that a store lacks. A content that does not have its hash any more is removed. Raises: OSError."""
    lacking: dict[str, None] = {}
    for file in bundle.files:
        kept = store / file.sha256
        if kept.is_file() and file_sha256(kept) == file.sha256:
            continue
        kept.unlink(missing_ok=True)
        lacking[file.sha256] = None
    return tuple(lacking)


def unpack(bundle: Bundle, contents: Mapping[str, bytes], store: Path, root: Path) -> Path:
    """Lay the files of a bundle out below ``root``, and return the folder of its recipe.

    Contents are kept in ``store`` by their hash, and linked from there, so that each is written once per machine. A
    file that changed since it was hashed is left out, if it is not decisive.

    Raises: AceError(BAD_FILE) if another content does not have its hash, or a path leaves the root.
    """
    private_folder(store)
    for file in bundle.files:
        target = (root / file.path).resolve()
        kept = store / file.sha256
        if leads_out(target, root):
            raise AceError.of(ErrorCode.BAD_FILE, f"{file.path} is outside of its bundle")
        if not kept.is_file() or file_sha256(kept) != file.sha256:
            content = contents.get(file.sha256, b"")
            if sha256(content).hexdigest() != file.sha256:
                if not file.is_decisive:
                    continue
                why = "it changed meanwhile, or was damaged on the way"
                raise AceError.of(ErrorCode.BAD_FILE, f"{file.path} did not arrive as it was sent", why=why)
            write_atomically(kept, content)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            _link(kept, target)
    return (root / bundle.folder).resolve()


def _link(source: Path, target: Path) -> None:
    """A hard link costs no space; user code that writes into a file would change the store, so code gets a copy."""
    if target.suffix == ".py":
        write_atomically(target, source.read_bytes())
    else:
        link_or_copy(source, target)


def named_files(recipe: Recipe, folder: Path) -> Iterator[Path]:
    """The files, and the files in the folders, that a recipe names."""
    texts: list[str] = []

    def note(text: str) -> str:
        texts.append(text)
        return text

    with_paths(recipe, note)
    for text in texts:
        # "file:name" also names a file: the weights of one model in a file of several.
        for path in (folder / text, folder / text.rpartition(":")[0]):
            if text and path.is_file():
                normal = Path(os.path.normpath(path))
                yield normal
                with suppress(AceError):  # a damaged index is reported where it is opened
                    yield from with_shards(normal)[1:]
            elif text and path.is_dir() and path != folder and path != folder / "":
                yield from _files_below(Path(os.path.normpath(path)), most=MOST_FILES)


def _matched(folder: Path, patterns: Sequence[str]) -> Iterator[Path]:
    """The files that patterns match. Raises: AceError(NOT_FOUND) for one without a file."""
    for pattern in patterns:
        # An absolute one, or one of a drive, is no pattern for a folder.
        found = [] if Path(pattern).anchor else [path for path in folder.glob(pattern) if path.is_file()]
        if not found:
            raise AceError.of(ErrorCode.NOT_FOUND, f"No file matches '{pattern}'", where=str(folder))
        yield from found


def _files_below(folder: Path, *, most: int) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        here = Path(place)
        if place != str(folder) and ({"pyvenv.cfg", "result.json", "sweep.json"} & set(names)):
            folders.clear()
            continue
        folders[:] = sorted(one for one in folders if not one.startswith(".") and one != "__pycache__")
        for name in sorted(names):
            if not name.startswith(".") and (here / name).is_file():
                yield here / name
                most -= 1
                if most < 0:
                    return
