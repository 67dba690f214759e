"""Weights in several files, and the index that names them: a JSON table with a ``weight_map``."""

from pathlib import Path

import msgspec

from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.safe_file import decode_plain, read_plain

INDEX_SUFFIX = ".index.json"
_LARGEST_INDEX_BYTES = 50_000_000
_MOST_SHOWN = 5


class _Index(msgspec.Struct):
    weight_map: dict[str, str] = {}
    """Tensor -> the file that holds it."""


def is_index(path: Path) -> bool:
    """Whether the file is an index of weights, by its name."""
    return path.name.endswith(INDEX_SUFFIX)


def shard_files(index: Path) -> tuple[Path, ...]:
    """The files that an index names, in its folder, by name.

    Raises: AceError(BAD_FILE) if it is damaged, names none, or names a file that is not in its folder.
    """
    try:
        table = decode_plain(read_plain(index, most=_LARGEST_INDEX_BYTES), _Index).weight_map
    except (OSError, msgspec.DecodeError) as error:
        raise _bad(index, "is no index of weights", why=str(error), remedy="download or save it again") from error
    if not table:
        raise _bad(index, "names no file of weights", why="it has no weight_map", remedy="download or save it again")
    names = sorted(set(table.values()))
    for name in names:
        if Path(name).name != name or name.endswith(INDEX_SUFFIX):
            what = f"names a file outside of its folder: {name}" if Path(name).name != name else "names an index"
            raise _bad(index, what, why="it may name files of weights in its folder", remedy="do not use this file")
    if missing := [name for name in names if not (index.parent / name).is_file()]:
        more = f" and {len(missing) - _MOST_SHOWN} more" if len(missing) > _MOST_SHOWN else ""
        raise _bad(
            index,
            f"names files of weights that are not beside it ({len(missing)} of {len(names)})",
            why=f"missing: {', '.join(missing[:_MOST_SHOWN])}{more}",
            remedy="download the rest into the same folder",
        )
    return tuple(index.parent / name for name in names)


def with_shards(path: Path) -> tuple[Path, ...]:
    """The file, and after an index the files that it names. Raises: AceError(BAD_FILE), as `shard_files`."""
    return (path, *shard_files(path)) if is_index(path) else (path,)


def _bad(index: Path, what: str, *, why: str, remedy: str) -> AceError:
    return AceError.of(ErrorCode.BAD_FILE, f"{index.name} {what}", why=why, remedy=remedy, where=str(index))
