"""Describes and builds models that are opened by name: functions of the loader registry."""

from pathlib import Path

from torch import Tensor, nn

from ace_studio.engine.load.load_job import LoadJob, OpenedModel
from ace_studio.engine.load.named.models import NamedModel, find_model
from ace_studio.engine.load.proposals import examples_of, specs_of
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import FileFacts, StoredTensor
from ace_studio.records.recipes.named_source import named_source


def describe_named(path: Path) -> FileFacts:
    """Describe the model, its tensors and example inputs; it is built with shapes alone where that works.

    Raises: AceError(NOT_INSTALLED or NOT_FOUND) as `find_model`.
    """
    model = _find(path)
    module = model.build_on_meta()
    notes = [f"{model.source.model} of {model.source.collection} {model.version}", model.summary]
    if module is not None:
        notes.append(f"{sum(parameter.numel() for parameter in module.parameters()):,} parameters")
    return FileFacts(
        notes=tuple(note for note in notes if note),
        tensors=tensors_of(module) if module is not None else (),
        inputs=specs_of(model.rows(module)),
    )


def build_named(job: LoadJob) -> OpenedModel:
    """Build the model with random weights, and propose examples.

    Raises: AceError(NOT_INSTALLED, NOT_FOUND) as `find_model`; AceError(RECIPE) if there is an entry as well;
        AceError(USER_CODE) if the package cannot build it.
    """
    model = _find(job.path)
    if job.entry_word:
        raise AceError.of(
            ErrorCode.RECIPE,
            f"{model.source.text} needs no entry, but the recipe names '{job.entry_word}'",
            why=f"{model.source.collection} builds the model by its name",
            remedy="remove [model] entry, or make the source the .py file with that callable",
        )
    with job.library.user.guard(f"Building {model.source.text}"):
        module = model.build()
    job.warn_of_random_weights(model.source.text)
    return OpenedModel(module, examples_of(model.rows(module), module), are_made_up=True, files=model.files())


def tensors_of(module: nn.Module) -> tuple[StoredTensor, ...]:
    """The names, types and shapes of a module's state."""
    return tuple(
        StoredTensor(name=name, dtype=str(tensor.dtype).removeprefix("torch."), shape=tuple(tensor.shape))
        for name, tensor in module.state_dict().items()
        if isinstance(tensor, Tensor)
    )


def _find(path: Path) -> NamedModel:
    source = named_source(path)
    assert source is not None, "the registry sends names here only"
    return find_model(source)
