"""Loads the model of a recipe: finds the files, checks trust, imports, builds, and loads the weights."""

import contextlib
import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from ace_studio.engine.examples.caught import read_caught, read_structure
from ace_studio.engine.examples.reader import limit_examples
from ace_studio.engine.flow import DataSources, Example, LoadedModel
from ace_studio.engine.load.callables import CallableReference, CodeFile, CodeLibrary, choose_entry, parse_reference
from ace_studio.engine.load.first_layers import propose_rows
from ace_studio.engine.load.identify import identify, model_path
from ace_studio.engine.load.import_gate import GATE, hashes_of
from ace_studio.engine.load.imports_beside import imports_beside
from ace_studio.engine.load.kinds import LOADERS, Loader, TrustLevel
from ace_studio.engine.load.load_job import LoadJob, OpenedModel
from ace_studio.engine.load.onnx.model import OnnxModule
from ace_studio.engine.load.onnx.proposing import propose_onnx_rows
from ace_studio.engine.load.proposals import examples_of, said_of
from ace_studio.engine.load.sniff import bad_file, checked_sha256
from ace_studio.engine.load.tensors import forbid_unsafe_loading, read_checkpoint, read_state_dict, read_state_dicts
from ace_studio.engine.load.torchvision.ops import make_importable, warn_if_standing_in
from ace_studio.engine.load.trust import CodeToRun, require_trust
from ace_studio.engine.load.user_code import UserModules
from ace_studio.engine.load.weights import load_weights, write_out_weights
from ace_studio.engine.progress import Reporter
from ace_studio.records.errors import AceError, ErrorCode, Problem, message_of
from ace_studio.records.messages import WEIGHTS_ALONE, Phase
from ace_studio.records.outside import outside_files
from ace_studio.records.recipes.named_source import named_source
from ace_studio.records.recipes.recipe import InputsChoice, Recipe
from ace_studio.records.shards import with_shards
from ace_studio.records.tensors import DATA_SUFFIXES


@dataclass(frozen=True)
class _Sources:
    """Every file that the recipe names, found and identified before any code runs."""

    source: Path
    loader: Loader
    weights: Path | None
    weights_key: str
    """Key or name prefix of the state dict to take; empty for the one that fits best."""
    entry: CallableReference | None
    roles: dict[str, CallableReference]
    """``tracing``, ``calibration``, ``evaluate`` -> the callable, for those that the recipe names."""
    code: dict[Path, CodeFile]


def load_model(recipe: Recipe, folder: Path, *, is_trusted: Callable[[str], bool], reporter: Reporter) -> LoadedModel:
    """Load what the recipe's ``[model]`` names and find the callables that its other tables name.

    Args:
        recipe: What to load.
        folder: Folder that the recipe's paths are relative to.
        is_trusted: Whether the code of the file with this SHA-256 may run. Asked for every file before any runs.
        reporter: Gets the phase, and warnings about the weights.

    Raises:
        AceError: NOT_FOUND or BAD_FILE for a file or a callable; UNTRUSTED, one problem per file, before anything has
            run, or data or weights outside of the folder are read; USER_CODE or NOT_INSTALLED if the user's code fails;
            UNSUPPORTED for kinds that cannot be captured.
    """
    forbid_unsafe_loading()
    make_importable()
    reporter.phase(Phase.LOAD, recipe.model.source)
    outside = outside_files(recipe, folder)
    if problems := [problem for sha256, problem in outside.items() if not is_trusted(sha256)]:
        raise AceError(*problems)
    sources = _find_sources(recipe, folder)
    GATE.begin(is_trusted)
    GATE.ran.update({problem.where: sha256 for sha256, problem in outside.items()})
    for place in (folder, sources.source if sources.source.is_dir() else sources.source.parent):
        GATE.add_folder(place)
    with _content_to_open(sources) as content:
        try:
            return _load(recipe, folder, sources, content, is_trusted=is_trusted, reporter=reporter)
        finally:
            GATE.raise_refused()  # user code and libraries may hide the refusal, or fail because of it


def _load(
    recipe: Recipe,
    folder: Path,
    sources: _Sources,
    content: Path,
    *,
    is_trusted: Callable[[str], bool],
    reporter: Reporter,
) -> LoadedModel:
    limit_examples(recipe.limits.examples)
    library = CodeLibrary(sources.code, UserModules())
    job = LoadJob(
        path=sources.source,
        content=content,
        entry=sources.entry,
        library=library,
        reporter=reporter,
        entry_word=recipe.model.entry if sources.loader.has_own_entry else "",
        has_weights=sources.weights is not None,
    )
    if not sources.loader.is_openable:
        sources.loader.build(job)
    code = _code_to_run(sources, content)
    require_trust(code, is_trusted)
    GATE.ran.update({str(file.path): file.sha256 for file in code})
    functions = _find_functions(sources.roles, library) | _caught_functions(recipe, folder)
    built = sources.loader.build(job)
    forbid_unsafe_loading()  # the user's code may have set it
    if sources.weights is not None:
        reporter.advance(None, sources.weights.name)
        states = read_state_dicts(sources.weights, key=sources.weights_key)
        load_weights(built.module, states, sources.weights, reporter=reporter)
    written = write_out_weights(built.module)
    if written:
        reporter.advance(None, f"computed weights written out: {len(written)} ({written[0]}, ...)")
    warn_if_standing_in(built.module, library.user.files(), reporter)
    files = _all_files(sources, built, library)
    if not GATE.environment:
        GATE.ran.update(hashes_of(library.user.files()))
    examples = built.examples
    is_given = recipe.inputs != InputsChoice() or any((recipe.calibration.inputs, recipe.calibration.caught))
    if isinstance(built.module, OnnxModule):  # data get their form from proposed inputs
        is_given = any((recipe.inputs.rows, recipe.inputs.tracing, recipe.inputs.caught))
    is_proposed = not (examples or is_given)
    refused = ""
    if is_proposed:
        with library.user.guard(f"Running {sources.source.name} with proposed inputs"):
            examples, refused = _proposed_examples(built.module, reporter, is_needed="calibration" not in functions)
    return LoadedModel(
        module=built.module,
        source=sources.source,
        sha256=files_sha256(files),
        data=DataSources(
            examples=examples,
            are_made_up=is_proposed or built.are_made_up,
            refused=refused,
            calibration=functions.get("calibration"),
            calibration_path=data_path(recipe.calibration.inputs, folder),
            tracing=functions.get("tracing"),
            tracing_path=data_path(recipe.inputs.tracing, folder, where="[inputs] tracing"),
            evaluate=functions.get("evaluate"),
            labelled=functions.get("labelled"),
            finetune=functions.get("finetune_data"),
            finetune_loss=functions.get("finetune_loss"),
        ),
        files=files,
        code=GATE.ran,
        frontend=sources.loader.frontend,
        reference=built.reference,
    )


def _proposed_examples(module: nn.Module, reporter: Reporter, *, is_needed: bool) -> tuple[tuple[Example, ...], str]:
    """Examples for a model that came without any, with a warning that says what they are; if none runs, why.

    Raises: AceError(BAD_INPUT) for an ONNX file that runs on none, if they are needed.
    """
    proposal = propose_onnx_rows(module) if isinstance(module, OnnxModule) else propose_rows(module)
    if isinstance(proposal.error, AceError) and is_needed:
        raise proposal.error
    if proposal.error is not None:
        kind = type(proposal.error).__name__
        return (), f"with random {said_of(proposal.refused)} forward raised {kind}: {message_of(proposal.error)}"
    if proposal.rows:
        reporter.warn(
            "proposed-inputs",
            f"No examples were given, so the model runs on random ones that it takes: "
            f"{said_of(proposal.rows[0])}. Add rows of the real sizes to the shape table if they differ",
            where="[inputs]",
        )
    return examples_of(proposal.rows, module), ""


def files_sha256(files: Sequence[Path]) -> str:
    """One hash over the names and contents of files in this order, independent of their folders.

    Raises: AceError(BAD_FILE) if one cannot be read any more.
    """
    total = hashlib.sha256()
    for path in files:
        total.update(f"{path.name}\0{checked_sha256(path)}\n".encode("utf-8", "surrogateescape"))
    return total.hexdigest()


def _find_sources(recipe: Recipe, folder: Path) -> _Sources:
    if not recipe.model.source:
        raise AceError.of(
            ErrorCode.RECIPE,
            "No model has been chosen",
            remedy="open a model file, or set [model] source in the recipe",
        )
    named = named_source(folder / recipe.model.source)
    source = Path(named.text) if named is not None else model_path(folder / recipe.model.source).resolve()
    loader = LOADERS[identify(source)]
    weights, weights_key = _weights_file(recipe.model.weights, folder)
    if weights is not None:
        _check_weights(weights)
        if loader.name in WEIGHTS_ALONE:
            raise AceError.of(
                ErrorCode.RECIPE,
                "The recipe names weights twice",
                why=f"the source {source.name} holds weights, and so does {weights.name}",
                remedy="remove [model] weights, or make the source the .py file with the factory",
            )
    is_python = loader.name == "python"
    default = source if is_python else None
    entry = None
    if recipe.model.entry and not loader.has_own_entry:
        entry = parse_reference(recipe.model.entry, role="entry", folder=folder, default=default)
        default = default or entry.path
    calibration_data = data_path(recipe.calibration.inputs, folder)
    tracing_data = data_path(recipe.inputs.tracing, folder, where="[inputs] tracing")
    roles = {
        role: parse_reference(text, role=label, folder=folder, default=default)
        for role, label, text in (
            ("tracing", "[inputs] tracing", "" if tracing_data else recipe.inputs.tracing),
            ("calibration", "[calibration] inputs", "" if calibration_data else recipe.calibration.inputs),
            ("evaluate", "[evaluate] function", recipe.evaluate.function),
            ("finetune_data", "[finetune] data", recipe.finetune.data),
            ("finetune_loss", "[finetune] loss", recipe.finetune.loss),
            ("labelled", "[evaluate] data", _callable_data(recipe.evaluate.data)),
        )
        if text
    }
    code = _read_code([*([source] if is_python else []), *(named.path for named in (entry, *roles.values()) if named)])
    if is_python and entry is None:
        taken = [named.name for named in roles.values() if named.path == source]
        entry = CallableReference(source, choose_entry(code[source], taken=taken), "entry")
    return _Sources(source, loader, weights, weights_key, entry, roles, code)


def data_path(text: str, folder: Path, *, where: str = "[calibration] inputs") -> Path | None:
    """The file of arrays or the folder that a text names; None if the text is empty or names a function.

    A folder has a slash in its text; a bare word is a function, even if a folder of that name exists.

    Raises: AceError(NOT_FOUND) if a folder or a file is named that is not there.
    """
    path = (folder / text).resolve()
    is_file = text.endswith(DATA_SUFFIXES)
    if not text or not (is_file or "/" in text or "\\" in text) or ".py:" in text:
        return None
    if path.is_file() if is_file else path.is_dir():
        return path
    raise AceError.of(
        ErrorCode.NOT_FOUND,
        f"There is no {'file' if is_file else 'folder'} {text}",
        remedy="check the path, which is relative to the recipe",
        where=where,
    )


def _callable_data(text: str) -> str:
    """The text if it names a function, else empty: files of tensors are read where they are used."""
    return "" if text.endswith(DATA_SUFFIXES) else text


def _weights_file(text: str, folder: Path) -> tuple[Path | None, str]:
    """``FILE`` or ``FILE:KEY`` -> the file and the key."""
    path = (folder / text).resolve()
    if not text or path.exists() or ":" not in path.name:
        return (path if text else None), ""
    name, _, key = path.name.rpartition(":")
    return path.with_name(name), key


def _check_weights(path: Path) -> None:
    kind = identify(path)
    if kind not in WEIGHTS_ALONE:
        if kind == "pickle-module":
            read_state_dict(path)  # raises, naming what else is in it
        raise bad_file(
            path,
            f"cannot serve as weights: it is {LOADERS[kind].label}",
            remedy="give a .safetensors file, one made by torch.save(model.state_dict(), path), or an .index.json",
        )


def _read_code(paths: Iterable[Path]) -> dict[Path, CodeFile]:
    code: dict[Path, CodeFile] = {}
    for path in paths:
        if path in code:
            continue
        if (kind := identify(path)) != "python":
            raise bad_file(
                path, f"is not Python source, but {LOADERS[kind].label}", remedy="name a function in a .py file"
            )
        code[path] = CodeFile.read(path)
    return code


@contextlib.contextmanager
def _content_to_open(sources: _Sources) -> Iterator[Path]:
    """A private copy of a source that holds code, so that it is opened as it was hashed; else the source itself.

    Python files are read once (`CodeFile`), and those of a folder pass through the import gate.

    Raises: AceError(BAD_FILE) if there is no room for the copy.
    """
    source = sources.source
    if sources.loader.trust is not TrustLevel.CODE or source.is_dir() or source in sources.code:
        yield source
        return
    with tempfile.TemporaryDirectory(prefix="ace-open-", ignore_cleanup_errors=True) as name:
        copy = Path(name) / source.name
        try:
            shutil.copyfile(source, copy)
        except OSError as error:
            raise bad_file(
                source,
                "could not be copied to a private folder, where nothing can change it while it is opened",
                why=str(error),
                remedy=f"make room in {Path(name).parent}, or set TMPDIR to a folder with enough",
            ) from error
        yield copy


def _code_to_run(sources: _Sources, content: Path) -> list[CodeToRun]:
    """The code that opening the source runs, and every ``.py`` file that the recipe names, with what these import."""
    files = {} if sources.source in sources.code else {file.path: file for file in _code_of_source(sources, content)}
    for path, code in sources.code.items():
        files.setdefault(path, CodeToRun(path, code.sha256, LOADERS["python"].describe(path).would_run))
    for file in imports_beside([code.source for code in sources.code.values()]):
        files.setdefault(file.path, file)
    return list(files.values())


def _code_of_source(sources: _Sources, content: Path) -> list[CodeToRun]:
    """What opening the source runs; the hash of the source is that of its private copy."""
    files = sources.loader.code_to_run(sources.source)
    return [replace(file, sha256=checked_sha256(content)) if file.path == sources.source else file for file in files]


def _find_functions(roles: dict[str, CallableReference], library: CodeLibrary) -> dict[str, Callable[..., Any]]:
    """The callables of the recipe. Raises: AceError with one problem for every one that is not there."""
    found: dict[str, Callable[..., Any]] = {}
    problems: list[Problem] = []
    for role, reference in roles.items():
        try:
            found[role] = library.function(reference)
        except AceError as error:
            if error.problem.code is not ErrorCode.NOT_FOUND:
                raise
            problems += error.problems
    if problems:
        raise AceError(*problems)
    return found


def _caught_functions(recipe: Recipe, folder: Path) -> dict[str, Callable[..., Any]]:
    """Functions that return the examples caught from a script. Raises: AceError(NOT_FOUND or BAD_FILE)."""
    found: dict[str, Callable[..., Any]] = {}
    for role, place in (("tracing", recipe.inputs.caught), ("calibration", recipe.calibration.caught)):
        if place:
            path = (folder / place).resolve()
            read_structure(path)  # raises now if it is damaged
            found[role] = partial(read_caught, path, read_tensors=read_checkpoint)
    return found


def _all_files(sources: _Sources, built: OpenedModel, library: CodeLibrary) -> tuple[Path, ...]:
    """The source, the weights, the files that the loader read, and the imported files of the user, in this order."""
    read = [shard for path in (sources.source, sources.weights) if path for shard in with_shards(path)]
    named = [*read, *built.files, *sources.code, *library.user.files()]
    return tuple(dict.fromkeys(path for path in named if path.is_file()))
