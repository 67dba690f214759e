"""Describes a folder without building its model."""

from importlib.util import find_spec
from pathlib import Path

from ace_studio.engine.load.huggingface.classes import entry_of, known_classes, step_entries
from ace_studio.engine.load.huggingface.folder import read_folder
from ace_studio.engine.load.huggingface.inputs import config_rows, parameters_of
from ace_studio.engine.load.huggingface.library import install_line
from ace_studio.engine.load.proposals import specs_of
from ace_studio.engine.load.state_match import shown
from ace_studio.engine.load.stored_tensors import list_tensors_of_file
from ace_studio.records.messages import FileFacts


def describe_huggingface(path: Path) -> FileFacts:
    """Describe class, tensors and example inputs.

    Raises: AceError(BAD_FILE) if configuration, index or a header is damaged.
    """
    folder = read_folder(path)
    files = folder.weight_files()
    names = ", ".join(folder.architectures) or "no class named"
    notes = [f"a Hugging Face model of type {folder.model_type or 'unknown'}: {names}"]
    notes.append(f"weights in {shown([file.name for file in files])}" if files else "it has no file of weights")
    is_here = find_spec("transformers") is not None
    if not is_here:
        notes.append(f"opening it needs transformers: {install_line('transformers')}")
    would_run: tuple[str, ...] = ()
    if folder.needs_its_own_code:
        would_run = tuple(f"{file.relative_to(path)} from top to bottom" for file in folder.code_files)
        notes.append("it brings Python code of its own, which the installed transformers does not have")
    known = known_classes(folder) if is_here and not folder.needs_its_own_code else {}
    accepts = parameters_of(next(iter(known.values()))) if known else None
    return FileFacts(
        would_run=would_run,
        entries=(*(entry_of(name, made) for name, made in known.items()), *step_entries(known)),
        tensors=tuple(tensor for file in files for tensor in list_tensors_of_file(file)),
        notes=tuple(notes),
        loads_weights=bool(files),
        inputs=specs_of(config_rows(folder.facts, accepts)),
    )
