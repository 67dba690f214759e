"""The registry of loaders, one row per kind of file: the trust it needs, how it is described and how it is opened."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from ace_studio.engine.load import builders, pickles
from ace_studio.engine.load.archive import open_archive
from ace_studio.engine.load.beside import code_beside, weights_beside
from ace_studio.engine.load.entries import list_entries, parse_source, read_source
from ace_studio.engine.load.exported import input_notes
from ace_studio.engine.load.huggingface import (
    build_huggingface,
    describe_huggingface,
    looks_like_huggingface,
    read_folder,
)
from ace_studio.engine.load.imports_beside import files_of_module, imports_beside
from ace_studio.engine.load.load_job import LoadJob, OpenedModel
from ace_studio.engine.load.named.fits import fitting_models, weights_summary
from ace_studio.engine.load.named.loader import build_named, describe_named
from ace_studio.engine.load.onnx.model import build_from_onnx, describe_onnx
from ace_studio.engine.load.roles import loads_weights
from ace_studio.engine.load.safetensors_header import read_header
from ace_studio.engine.load.sniff import ZIP_MAGIC, checked_sha256, read_head
from ace_studio.engine.load.state_match import shown
from ace_studio.engine.load.stored_tensors import list_tensors_of_file
from ace_studio.engine.load.torchscript.program import build_from_torchscript
from ace_studio.engine.load.trust import CodeToRun
from ace_studio.records.messages import FileFacts, StoredTensor
from ace_studio.records.shards import shard_files

_MOST_NAMES = 20


class TrustLevel(StrEnum):
    """The trust that opening a file needs."""

    INSPECT = "inspect"
    """None: it is only inspected."""
    DATA = "data"
    """None: its tensors are read as data."""
    CODE = "code"
    """The user must allow its code to run."""


@dataclass(frozen=True)
class Loader:
    """One row: a kind of file."""

    name: str
    label: str
    trust: TrustLevel
    suffixes: tuple[str, ...]
    describe: Callable[[Path], FileFacts]
    build: Callable[[LoadJob], OpenedModel]
    code_files: Callable[[Path], tuple[Path, ...]] = lambda path: (path,)
    """Files that the user must trust, for kinds that run code; what they import is found from them."""
    frontend: str = "torch"
    """Name of the frontend that obtains the graph of the opened model."""
    has_own_entry: bool = False
    """Whether the recipe's ``entry`` is a word that this kind defines, not a callable in a ``.py`` file."""
    is_openable: bool = True
    """False if ``build`` only raises the reason; then no trust is asked for."""

    def code_to_run(self, path: Path) -> list[CodeToRun]:
        """The code that opening a file runs: the file itself first, then what it imports from its folders.

        Raises: AceError(BAD_FILE) if it is damaged.
        """
        if self.trust is not TrustLevel.CODE:
            return []
        would_run = self.describe(path).would_run
        files = [CodeToRun(file, checked_sha256(file), would_run) for file in self.code_files(path)]
        sources = [parse_source(file.path, read_source(file.path)) for file in files if file.path.suffix == ".py"]
        listed = {file.path.resolve() for file in files}
        return [*files, *(file for file in imports_beside(sources) if file.path not in listed)]


def _describe_python(path: Path) -> FileFacts:
    source = parse_source(path, read_source(path))
    imports = ", ".join(source.imports)
    loads = loads_weights(source.tree)
    return FileFacts(
        would_run=(f"{path.name} from top to bottom, and the callable that you choose in it",)
        + ((f"what it imports: {imports}",) if imports else ()),
        entries=list_entries(source),
        loads_weights=loads,
        weights=() if loads else tuple(map(str, weights_beside(source))),
    )


def _describe_safetensors(path: Path) -> FileFacts:
    tensors, metadata = read_header(path)
    notes = tuple(f"{key}: {value}"[:200] for key, value in sorted(metadata.items())[:_MOST_NAMES])
    return _describe_weights(path, tuple(tensors), notes)


def _describe_state_dict(path: Path) -> FileFacts:
    return _describe_weights(path, list_tensors_of_file(path), _storage_notes(path))


def _describe_index(path: Path) -> FileFacts:
    files = shard_files(path)
    names = f"weights in {shown([file.name for file in files])}"
    return _describe_weights(path, list_tensors_of_file(path), (names,))


def _describe_weights(path: Path, tensors: tuple[StoredTensor, ...], notes: tuple[str, ...]) -> FileFacts:
    if looks_like_huggingface(path.parent):
        return FileFacts(tensors=tensors, notes=(*weights_summary(tensors), *notes), code=(str(path.parent),))
    return FileFacts(
        tensors=tensors,
        notes=(*weights_summary(tensors), *notes),
        code=tuple(map(str, code_beside(path, tensors))),
        fits=fitting_models(tensors),
    )


def _globals_of_pickle(path: Path) -> tuple[str, ...]:
    is_archive = read_head(path).startswith(ZIP_MAGIC)
    return pickles.unsafe_globals_of_archive(open_archive(path)) if is_archive else pickles.unsafe_globals_of_file(path)


def _files_of_pickle(path: Path) -> tuple[Path, ...]:
    """The pickle, and the files beside it that hold the classes it names."""
    files = [file for name in _globals_of_pickle(path) for file in files_of_module(name, path.parent)]
    return (path, *dict.fromkeys(files))


def _describe_pickle(path: Path) -> FileFacts:
    return FileFacts(
        would_run=tuple(f"imports and may call {name}" for name in _globals_of_pickle(path)[:_MOST_NAMES]),
        notes=_storage_notes(path),
    )


def _describe_torchscript(path: Path) -> FileFacts:
    archive = open_archive(path)
    code = sorted(name for name in archive.members if "/code/" in name and name.endswith(".py"))
    runs = tuple(f"compiles and runs {name}" for name in code[:_MOST_NAMES])
    return FileFacts(would_run=runs or ("restores objects of classes whose code is missing",))


def _describe_pt2(path: Path) -> FileFacts:
    archive = open_archive(path)
    calls: list[str] = []
    inputs: tuple[str, ...] = ()
    for name, info in archive.members.items():
        if name.endswith("/models/model.json") and info.file_size <= pickles.LARGEST_PICKLE_BYTES:
            inputs = input_notes(archive.read(info, limit=pickles.LARGEST_PICKLE_BYTES))
        if name.endswith((".pkl", ".pickle")):
            calls += pickles.unsafe_globals(archive.read(info, limit=pickles.LARGEST_PICKLE_BYTES), path)
        elif name.endswith(".pt") and info.file_size <= pickles.LARGEST_PICKLE_BYTES:
            calls += pickles.unsafe_globals_of_nested(archive.read(info, limit=pickles.LARGEST_PICKLE_BYTES), path)
    general = "the exported program: its size expressions are evaluated and its stored inputs may be unpickled"
    return FileFacts(
        would_run=(general, *(f"imports and may call {name}" for name in dict.fromkeys(calls))),
        notes=(*inputs, "if you exported it yourself, it is as safe as the model it came from"),
    )


def _describe_folder(path: Path) -> FileFacts:
    names = sorted(entry.name for entry in path.iterdir())
    return FileFacts(notes=(f"{len(names)} files" + (": " + ", ".join(names[:8]) if names else ""),))


def _storage_notes(path: Path) -> tuple[str, ...]:
    head = read_head(path)
    if not head.startswith(ZIP_MAGIC):
        return ("in the format of torch before 1.6",) if pickles.is_legacy_torch(head) else ("a bare pickle",)
    archive = open_archive(path)
    order = archive.find("byteorder")
    if order is not None and archive.read(order, limit=100).strip() == b"big":
        return ("it says that its numbers are big-endian",)
    return ()


_HUGGINGFACE = Loader(
    name="huggingface",
    label="Hugging Face model",
    trust=TrustLevel.DATA,
    suffixes=(),
    describe=describe_huggingface,
    build=build_huggingface,
    has_own_entry=True,
)
_ROWS = (
    Loader(
        name="python",
        label="Python source",
        trust=TrustLevel.CODE,
        suffixes=(".py", ".pyw"),
        describe=_describe_python,
        build=builders.build_from_entry,
    ),
    Loader(
        name="safetensors",
        label="Weights in safetensors",
        trust=TrustLevel.DATA,
        suffixes=(".safetensors",),
        describe=_describe_safetensors,
        build=builders.build_from_weights,
    ),
    Loader(
        name="state-dict",
        label="Weights saved by torch (state dict)",
        trust=TrustLevel.DATA,
        suffixes=(".pt", ".pth", ".bin", ".ckpt", ".tar"),
        describe=_describe_state_dict,
        build=builders.build_from_weights,
    ),
    Loader(
        name="weights-index",
        label="Weights in several files, by their index",
        trust=TrustLevel.DATA,
        suffixes=(".json",),
        describe=_describe_index,
        build=builders.build_from_weights,
    ),
    Loader(
        name="pickle-module",
        label="Pickled Python objects (a whole module or a training checkpoint)",
        trust=TrustLevel.CODE,
        suffixes=(".pt", ".pth", ".bin", ".ckpt", ".pkl", ".tar"),
        describe=_describe_pickle,
        code_files=_files_of_pickle,
        build=builders.build_from_pickle,
    ),
    Loader(
        name="torchscript",
        label="TorchScript program",
        trust=TrustLevel.CODE,
        suffixes=(".pt", ".pth", ".ts", ".jit", ".torchscript"),
        describe=_describe_torchscript,
        build=build_from_torchscript,
    ),
    Loader(
        name="pt2",
        label="Exported program",
        trust=TrustLevel.CODE,
        suffixes=(".pt2",),
        describe=_describe_pt2,
        build=builders.build_from_exported_program,
    ),
    Loader(
        name="onnx",
        label="ONNX model",
        trust=TrustLevel.DATA,
        suffixes=(".onnx",),
        describe=describe_onnx,
        build=build_from_onnx,
        frontend="onnx",
    ),
    _HUGGINGFACE,
    replace(
        _HUGGINGFACE,
        name="huggingface-code",
        label="Hugging Face model with code of its own",
        trust=TrustLevel.CODE,
        code_files=lambda path: read_folder(path).code_files,
    ),
    *(
        Loader(
            name=package,
            label=f"Model of {package}",
            trust=TrustLevel.DATA,
            suffixes=(),
            describe=describe_named,
            build=build_named,
            code_files=lambda _: (),
            has_own_entry=True,
        )
        for package in ("timm", "torchvision")
    ),
    Loader(
        name="folder",
        label="Folder",
        trust=TrustLevel.INSPECT,
        suffixes=(),
        describe=_describe_folder,
        build=builders.refuse_folder,
        is_openable=False,
    ),
)

LOADERS: dict[str, Loader] = {row.name: row for row in _ROWS}
"""Kind, as returned by `identify.identify` -> row."""
