"""Verifies the artifact of a partial capture: a fresh process builds the model again and inserts its subgraphs."""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from ace_studio.engine.examples.stored_calls import CannotLeaveError, store_call
from ace_studio.engine.export.artifact import MIN_RELOAD_SQNR_DB, ModelSource, VerifyOrder, run_child
from ace_studio.engine.flow import Captured, Example, pooled_outputs, tensor_leaves
from ace_studio.engine.progress import Reporter
from ace_studio.engine.quantize.fidelity import measured_sqnr_db
from ace_studio.engine.subgraphs import run_pieces
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.recipe import ModelChoice, Recipe
from ace_studio.records.safe_file import native_stream


def verify_subgraphs(
    target: str,
    path: Path,
    examples: Sequence[Example],
    *,
    expected: Sequence[Sequence[Tensor]],
    captured: Captured,
    model: ModelSource,
    threads: int,
    reporter: Reporter,
) -> int | None:
    """Build the model in a new process, load the subgraphs with the code beside them, and compare.

    Args:
        target: Registry name of the target.
        path: The folder of the artifact.
        examples: Calls to make.
        expected: Tensors of the candidate's results in memory, for each example.
        captured: The module itself, and the device that it is on.
        model: Where it came from; a module that came from no file is written to one.
        threads: Threads that the new process may use.
        reporter: May cancel.

    Returns: As `verify_artifact`; None too where no other process could have the model.
    Raises: AceError(WRONG_CAPTURE) if it does not run or disagrees.
    """
    with tempfile.TemporaryDirectory(prefix="ace-verify-") as name:
        folder = Path(name)
        try:
            calls = tuple(store_call(example) for example in examples)
            source = model if model.recipe.model.source else _written(captured.module, folder)
        except CannotLeaveError as error:
            _verify_here(path, examples, expected=expected, module=captured.module)
            reporter.warn(
                "verified-here",
                f"The saved subgraphs were loaded and compared in this process only: {error}",
                where=str(path.name),
            )
            return None
        order = VerifyOrder(
            target=target,
            path=str(path.resolve()),
            examples=len(examples),
            places=(),
            threads=threads,
            device=str(captured.device),
            calls=calls,
            model=source,
            sys_path=tuple(str(one) for one in sys.path),  # entries may be paths
            imports=("torch._dynamo",),  # the code beside the subgraphs calls torch.compile
        )
        return run_child(folder, order, examples, expected=expected, reporter=reporter)


def _written(module: nn.Module, folder: Path) -> ModelSource:
    """Write the module to a file; that works if its class can be imported elsewhere."""
    homes = {type(child).__module__ for child in module.modules()}
    if "__main__" in homes or any("<locals>" in type(child).__qualname__ for child in module.modules()):
        raise CannotLeaveError("the model's class is defined in the running script, and no other process has it")
    try:
        with native_stream(folder / "model.pt") as stream:
            torch.save(module, stream)
    except Exception as error:  # the user's classes raise anything when they are pickled
        raise CannotLeaveError("the model cannot be written to a file") from error
    return ModelSource(recipe=Recipe(model=ModelChoice(source="model.pt")), folder=str(folder))


def _verify_here(
    path: Path, examples: Sequence[Example], *, expected: Sequence[Sequence[Tensor]], module: nn.Module
) -> None:
    runner = run_pieces.load(run_pieces.own_copy(module), path)
    results = [
        [leaf.detach().cpu().clone() for leaf in tensor_leaves(example.copied().call(runner))] for example in examples
    ]
    if measured_sqnr_db(pooled_outputs(expected), pooled_outputs(results)) < MIN_RELOAD_SQNR_DB:
        raise AceError.of(
            ErrorCode.WRONG_CAPTURE,
            f"The saved subgraphs in {path.name} do not compute what they did in memory",
            why="they were loaded again and compared with the candidate",
            remedy="Do not ship them. Try another target.",
            where=str(path),
        )
