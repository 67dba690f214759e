"""Which source the examples come from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from ace_studio.engine.examples.gather import gather_examples
from ace_studio.engine.flow import DataSources, Example, LoadedModel
from ace_studio.engine.load import load_model
from ace_studio.engine.pipeline.ready import make_ready
from ace_studio.engine.progress import Reporter
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.recipe import CalibrationChoice, InputsChoice, MeasureChoice, ModelChoice, Recipe
from ace_studio.records.tensors import TensorSpec


class TwoInputs(nn.Module):
    def forward(self, x: Tensor, state: Tensor, scale: float = 1.0) -> Tensor:
        return x + state * scale


def loaded(module: nn.Module, **fields: object) -> LoadedModel:
    return LoadedModel(module=module, source=Path(), sha256="", data=DataSources(**fields))


def never_read(path: Path) -> Tensor:
    raise AssertionError(f"nobody asked for {path}")


def gather(module: nn.Module, *rows: dict[str, TensorSpec], read_tensor=never_read, **fields: object):
    recipe = Recipe(inputs=InputsChoice(rows=rows))
    return gather_examples(
        loaded(module, **fields), recipe, Path("/recipes"), read_tensor=read_tensor, read_content=never_read
    )


def row(*shape: int, **fields: str) -> TensorSpec:
    return TensorSpec(shape=shape, **fields)


def test_rows_come_before_the_tracing_callable_and_that_before_the_entrys_examples() -> None:
    ones, twos = torch.ones(1), torch.full((1,), 2.0)
    model = TwoInputs()
    from_callable = gather(model, tracing=lambda: [(ones, ones)], examples=(Example((twos, twos)),))
    from_entry = gather(model, examples=(Example((twos, twos)),))
    assert torch.equal(from_callable[0].args[0], ones)
    assert torch.equal(from_entry[0].args[0], twos)


def test_a_tracing_callable_that_raises_is_reported_by_name() -> None:
    def inputs():
        raise KeyError("pixels")

    with pytest.raises(AceError) as caught:
        gather(TwoInputs(), tracing=inputs)
    assert caught.value.problem.code is ErrorCode.USER_CODE
    assert "inputs() raised KeyError" in caught.value.problem.what


def test_without_any_examples_the_message_says_where_to_add_them() -> None:
    with pytest.raises(AceError) as caught:
        gather(TwoInputs())
    assert caught.value.problem.code is ErrorCode.NO_DATA
    assert "tracing" in caught.value.problem.remedy


def test_without_any_examples_the_message_says_what_proposed_inputs_raised() -> None:
    with pytest.raises(AceError) as caught:
        gather(TwoInputs(), refused="with random x 1x16 forward raised ValueError: no")
    assert caught.value.problem.why.endswith("; with random x 1x16 forward raised ValueError: no")


def test_calibration_data_that_serves_for_tracing_is_also_given_in_another_batch_for_the_metric() -> None:
    loader = lambda: [(torch.ones(8, 4), torch.ones(8)), (torch.ones(8, 4), torch.ones(8))]  # noqa: E731
    batches = lambda **more: [one.args[0].shape[0] for one in gather(nn.Linear(4, 2), calibration=loader, **more)]  # noqa: E731
    assert batches() == [8, 8]
    assert batches(evaluate=lambda predict: 1.0) == [8, 4]


def test_trying_another_batch_leaves_the_module_as_it_was() -> None:
    class Keeps(nn.Linear):
        def __init__(self) -> None:
            super().__init__(4, 2)
            self.register_buffer("last", torch.zeros(4))

        def forward(self, x: Tensor) -> Tensor:
            self.last = x[0]
            return super().forward(x)

    module = Keeps()
    found = gather(module, calibration=lambda: [torch.ones(8, 4)], evaluate=lambda predict: 1.0)
    assert [one.args[0].shape[0] for one in found] == [8, 4]
    assert torch.equal(module.last, torch.zeros(4))


def test_a_batch_that_the_model_does_not_take_is_not_tried_on() -> None:
    class Fixed(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.reshape(8, 4)

    found = gather(Fixed(), calibration=lambda: [torch.ones(8, 4)], evaluate=lambda predict: 1.0)
    assert [one.args[0].shape[0] for one in found] == [8]


MODEL = """
import torch
def linear():
    return torch.nn.Linear(4, 2)
def pictures():
    return torch.nn.Conv2d(3, 2, 3)
def grey():
    return torch.nn.Conv2d(1, 2, 3)
def sized():
    return torch.nn.Conv2d(3, 2, 3), [torch.zeros(1, 3, 5, 6)]
"""


def _examples(folder, given, entry="linear", **calibration):
    (folder / "model.py").write_text(MODEL)
    recipe = Recipe(
        model=ModelChoice(source="model.py", entry=entry),
        inputs=InputsChoice(tracing=given),
        calibration=CalibrationChoice(**calibration),
        measure=MeasureChoice(device="cpu"),
    )
    loaded = load_model(recipe, folder, is_trusted=lambda sha256: True, reporter=Reporter())
    return [tuple(one.tensors()[0].shape) for one in make_ready(loaded, recipe, folder).examples]


def _picture(path, size):
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", size, (255, 0, 0)).save(path)


def test_an_npz_file_shows_that_the_batch_is_free(tmp_path):
    np.savez(tmp_path / "data.npz", input=np.zeros((10, 4)))
    assert _examples(tmp_path, "data.npz") == [(1, 4), (4, 4)]


def test_a_safetensors_file_does_too(tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    safetensors.save_file({"x": torch.zeros(3, 4)}, tmp_path / "data.safetensors")
    assert _examples(tmp_path, "data.safetensors") == [(1, 4), (3, 4)]


def test_a_pt_file_may_hold_a_list_of_calls(tmp_path):
    torch.save([(torch.ones(2, 4),), (torch.ones(5, 4),)], tmp_path / "data.pt")
    assert _examples(tmp_path, "data.pt") == [(2, 4), (5, 4)]


def test_a_pt_file_with_code_in_it_is_not_run(tmp_path):
    torch.save([pytest.raises], tmp_path / "data.pt")
    with pytest.raises(AceError):
        _examples(tmp_path, "data.pt")


def test_images_are_taken_at_their_own_sizes(tmp_path):
    (tmp_path / "photos").mkdir()
    for name, size in (("a", (8, 6)), ("b", (8, 6)), ("c", (10, 12))):
        _picture(tmp_path / "photos" / f"{name}.png", size)
    assert _examples(tmp_path, "photos/", "pictures") == [(1, 3, 6, 8), (2, 3, 6, 8), (1, 3, 12, 10)]
    assert _examples(tmp_path, "photos/", "grey")[0] == (1, 1, 6, 8)


def test_images_get_the_size_of_the_entrys_own_example(tmp_path):
    (tmp_path / "photos").mkdir()
    _picture(tmp_path / "photos" / "a.png", (8, 6))
    assert _examples(tmp_path, "photos/", "sized") == [(1, 3, 5, 6)]


@pytest.mark.parametrize("given", ["gone.npz", "gone/"])
def test_what_is_not_there_is_told_with_the_key(tmp_path, given):
    with pytest.raises(AceError) as caught:
        _examples(tmp_path, given)
    assert (caught.value.problem.code, caught.value.problem.where) == (ErrorCode.NOT_FOUND, "[inputs] tracing")


def test_a_folder_without_images_and_a_broken_one_are_told_with_the_key(tmp_path):
    pytest.importorskip("PIL")
    (tmp_path / "photos").mkdir()
    with pytest.raises(AceError, match="no images") as caught:
        _examples(tmp_path, "photos/", "pictures")
    assert caught.value.problem.where == "[inputs] tracing"
    (tmp_path / "photos" / "a.png").write_bytes(b"broken")
    with pytest.raises(AceError, match=r"a\.png"):
        _examples(tmp_path, "photos/", "pictures")


def test_a_file_that_does_not_fit_says_which_name(tmp_path):
    np.savez(tmp_path / "data.npz", x=np.zeros((3, 4)), y=np.zeros((3, 4)), z=np.zeros((3, 4)))
    with pytest.raises(AceError, match="forward has no input"):
        _examples(tmp_path, "data.npz")
