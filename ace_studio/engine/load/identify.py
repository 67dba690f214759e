"""Identifies the kind of a file, which is a row of the loader registry, by its content."""

from pathlib import Path

from ace_studio.engine.load import sniff
from ace_studio.engine.load.archive import Archive, open_archive
from ace_studio.engine.load.huggingface import FOLDER_FILES, looks_like_huggingface, read_folder
from ace_studio.engine.load.onnx.header import looks_like_onnx
from ace_studio.engine.load.pickles import unsafe_globals_of_archive, unsafe_globals_of_file
from ace_studio.engine.load.safetensors_header import looks_like_safetensors
from ace_studio.records.recipes.named_source import named_source
from ace_studio.records.shards import is_index


def identify(path: Path) -> str:
    """Return the kind: a key of `LOADERS`. A path that names a model of a package (``timm:resnet18``) has its kind.

    Raises: AceError(NOT_FOUND or BAD_FILE) saying what it is instead.
    """
    if (named := named_source(path)) is not None:
        return named.collection
    if path.is_dir():
        sniff.check_readable(path)
        return _identify_folder(path)
    head = sniff.checked_head(path)
    if is_index(path):
        return "weights-index"
    if head.startswith(sniff.ZIP_MAGIC):
        return _identify_archive(open_archive(path))
    if looks_like_safetensors(head):  # before pickles: a header of 640 bytes begins as a pickle does
        return "safetensors"
    if head.startswith(sniff.PICKLE_MAGIC):
        return "pickle-module" if unsafe_globals_of_file(path) else "state-dict"
    if path.suffix == ".safetensors":
        return "safetensors"
    if path.suffix in (".py", ".pyw") and sniff.is_text(head.decode("latin-1").encode()):
        return "python"
    if looks_like_onnx(path, head):
        return "onnx"
    raise sniff.unknown_file(path, head)


def model_path(path: Path) -> Path:
    """The folder, if the path is a configuration file in a Hugging Face folder; else the path."""
    if path.name in FOLDER_FILES and path.is_file() and looks_like_huggingface(path.parent):
        return path.parent
    return path


def _identify_folder(path: Path) -> str:
    if not looks_like_huggingface(path):
        return "folder"
    return "huggingface-code" if read_folder(path).needs_its_own_code else "huggingface"


def _identify_archive(archive: Archive) -> str:
    names = archive.inner_names
    if any(name.startswith("data/aotinductor/") for name in names):
        why, remedy = "it holds machine code and no graph to work on", "give the model it was compiled from"
        raise sniff.bad_file(archive.path, "is a compiled AOTInductor package", why=why, remedy=remedy)
    if "archive_format" in names or "models/model.json" in names or "serialized_exported_program.json" in names:
        return "pt2"
    if "data.pkl" not in names:
        holds_arrays = bool(names) and all(name.endswith(".npy") for name in names)
        raise sniff.bad_file(
            archive.path,
            "is a zip archive of numpy arrays" if holds_arrays else "is a zip archive, but not one of PyTorch",
            why=f"it holds {', '.join(sorted(archive.members)[:4]) or 'nothing'}",
            remedy="give the model file itself",
        )
    if "constants.pkl" in names or any(name.startswith("code/") for name in names):
        return "torchscript"
    return "pickle-module" if unsafe_globals_of_archive(archive) else "state-dict"
