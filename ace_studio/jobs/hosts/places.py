"""Paths of a job there and here: events name the user's own files, and results are written where the user said."""

import html
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import IO, Any

import msgspec
from msgspec.structs import replace

from ace_studio.records import messages
from ace_studio.records.bundle import BundledFile
from ace_studio.records.results import RESULT_NAME
from ace_studio.records.safe_file import file_sha256, temporary_prefix, write_atomically
from ace_studio.records.sending import Word, host_of

_WITH_PATHS = frozenset({RESULT_NAME, "report.html"})
"""Results that name the user's files; the others are kept as they came, byte by byte."""


def output_of(request: messages.AnyRequest) -> Path | None:
    """The folder here that a job's results go to; None if it writes none."""
    match request:
        case messages.RunRequest(output=output) if output:
            return Path(output).absolute()
        case messages.ValuesRequest(save=save) if save:
            return Path(save).absolute().parent
        case _:
            return None


class Places:
    """Where the files of one job are, there and here."""

    def __init__(self, folder: Path, inside: str, output: Path | None, *, files_there: str, output_there: str) -> None:
        """Note the places.

        Args:
            folder: Folder of the recipe, here.
            inside: The same in the bundle, relative to its root.
            output: Folder for results, here.
            files_there: Root of the bundle, there.
            output_there: Folder for results, there.
        """
        steps = len(PurePosixPath(inside).parts)
        self._root = folder.parents[steps - 1] if steps else folder
        self.output = output
        self._pairs = ((files_there, str(self._root)), (output_there, str(output or self._root)))

    def here(self, payload: bytes) -> bytes:
        """An encoded event with the paths of here in all its texts."""
        if not any(there.encode() in payload for there, _ in self._pairs):
            return payload
        return msgspec.msgpack.encode(self._renamed(msgspec.msgpack.decode(payload)))

    def _renamed(self, value: Any) -> Any:
        match value:
            case str():
                for there, here in self._pairs:
                    value = value.replace(there, here)
                return value
            case dict():
                return {self._renamed(key): self._renamed(one) for key, one in value.items()}
            case list():
                return [self._renamed(one) for one in value]
            case _:
                return value

    def _rewritten(self, content: bytes, *, is_json: bool) -> bytes:
        for there, here in self._pairs:
            text = json.dumps(here)[1:-1] if is_json else html.escape(here)
            content = content.replace(there.encode(), text.encode())
        return content

    def there(self, request: messages.AnyRequest) -> messages.AnyRequest:
        """The request with a file that it names relative to the root, and without what concerns this machine alone."""
        if isinstance(request, messages.TraceRequest):
            code = tuple(one for one in request.trusted_sha256 if not host_of(one))
            request = replace(request, word=Word(), trusted_sha256=code)
        if isinstance(request, messages.FixRequest) and request.file:
            with suppress(ValueError):
                inside = Path(request.file).absolute().relative_to(self._root)
                return replace(request, file=inside.as_posix())
        return request

    def has(self, file: BundledFile) -> bool:
        """Whether a result is here already, as it is there."""
        path = self._path(file)
        return path.is_file() and path.stat().st_size == file.size and file_sha256(path) == file.sha256

    @contextmanager
    def writing(self, file: BundledFile) -> Iterator[IO[bytes]]:
        """A stream for a result, which is in its place when it is complete.

        Raises: OSError, also if the content does not have its hash, or the path leaves the folder.
        """
        path = self._path(file)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{temporary_prefix(path)}fetched.tmp")
        try:
            with part.open("wb") as stream:
                yield stream
            if file_sha256(part) != file.sha256:
                raise OSError(f"{file.path} did not arrive as it was sent")
            if path.name in _WITH_PATHS and path.parent == self.output.resolve():  # type: ignore[union-attr]
                write_atomically(path, self._rewritten(part.read_bytes(), is_json=path.suffix == ".json"))
            else:
                part.replace(path)
        finally:
            part.unlink(missing_ok=True)

    def _path(self, file: BundledFile) -> Path:
        assert self.output is not None
        path = (self.output / file.path).resolve()
        if not path.is_relative_to(self.output.resolve()):
            raise OSError(f"{file.path} is outside of the output folder")
        return path
