"""What the user's code does wrong is told with its line; what it leaves behind is cleared away."""

from __future__ import annotations

import sys

import pytest
import torch

from ace_studio.engine.progress import Cancelled
from ace_studio.records.errors import AceError, ErrorCode
from tests.engine.load.samples import NET_SOURCE, load, write_net

NEAR = "import near\nfrom torch import nn\ndef make():\n    return nn.Linear(2, near.width)\n"
MAKE = "from torch import nn\ndef make():\n    return nn.Linear(2, 3)\n"


def test_errors_while_iterating_or_evaluating_are_the_user_s_too(tmp_path):
    source = (
        NET_SOURCE + "\ndef bad():\n    yield 1\n    raise KeyError('later')\ndef score(predict):\n    return nope\n"
    )
    write_net(tmp_path, source=source)
    loaded = load(tmp_path, "net.py", calibration="bad", evaluate="score")
    items = iter(loaded.data.calibration())
    assert next(items) == 1
    with pytest.raises(AceError, match="later"):
        next(items)
    with pytest.raises(AceError, match="nope") as caught:
        loaded.data.evaluate(loaded.module)
    assert caught.value.problem.code is ErrorCode.USER_CODE


def test_a_cancelled_job_stays_cancelled_inside_evaluate(tmp_path):
    write_net(tmp_path)
    loaded = load(tmp_path, "net.py", evaluate="evaluate")

    def predict(*args):
        raise Cancelled.of(ErrorCode.CANCELLED, "stop")

    with pytest.raises(Cancelled):
        loaded.data.evaluate(predict)


def test_neighbours_import_at_the_top_and_inside_calls(tmp_path):
    source = NET_SOURCE + "\ndef score(predict):\n    import near\n    return near.value\n"
    write_net(tmp_path, source=source)
    write_net(tmp_path, "near.py", "value = 7.0\n")
    assert load(tmp_path, "net.py", evaluate="score").data.evaluate(None) == 7.0


def test_a_neighbour_is_found_late_in_forward(tmp_path):
    source = NET_SOURCE.replace("return self.linear(x)", "import near; return self.linear(x) * near.value")
    write_net(tmp_path, source=source)
    write_net(tmp_path, "near.py", "value = 0\n")
    assert load(tmp_path, "net.py").module(torch.ones(1, 2)).abs().sum() == 0


def test_edits_are_seen_by_the_next_load_in_neighbours_too(tmp_path):
    for width in (3, 4, 5):
        write_net(tmp_path, "m.py", NEAR)
        write_net(tmp_path, "near.py", f"width = {width}\n")
        assert load(tmp_path, "m.py").module.out_features == width
    assert not (tmp_path / "__pycache__").exists()


def test_two_projects_with_neighbours_of_one_name_do_not_mix(tmp_path):
    for width in (3, 4):
        folder = tmp_path / str(width)
        folder.mkdir()
        write_net(folder, "m.py", NEAR)
        write_net(folder, "near.py", f"width = {width}\n")
        assert load(folder, "m.py").module.out_features == width


def test_folders_without_init_and_paths_the_user_added_are_read_again(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "elsewhere").mkdir()
    source = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'elsewhere')!r})\nimport parts.a, far\nfrom torch import nn\n"
        "def make():\n    return nn.Linear(far.width, parts.a.width)\n"
    )
    for width in (3, 4):
        write_net(tmp_path, "m.py", source)
        write_net(tmp_path / "parts", "a.py", f"width = {width}\n")
        write_net(tmp_path / "elsewhere", "far.py", f"width = {width}\n")
        loaded = load(tmp_path, "m.py")
        assert (loaded.module.in_features, loaded.module.out_features) == (width, width)
        assert tmp_path / "elsewhere" / "far.py" in loaded.files
    assert sys.path.count(str(tmp_path / "elsewhere")) == 1


def test_sys_path_does_not_grow(tmp_path):
    write_net(tmp_path)
    load(tmp_path, "net.py")
    before = list(sys.path)
    for _ in range(3):
        load(tmp_path, "net.py")
    assert sys.path == before


@pytest.mark.parametrize("name", ["json.py", "torch.py", "onnx.py", "__init__.py", "my-model 2.py", "test.py"])
def test_a_file_may_have_the_name_of_a_library(tmp_path, name):
    import json

    write_net(tmp_path, name, MAKE if name == "torch.py" else NET_SOURCE)
    # A file called torch.py cannot import torch.nn from beside itself in plain Python either; it works here because
    # torch is imported already.
    loaded = load(tmp_path, name)
    assert loaded.module(torch.ones(1, 2)).shape == (1, 3)
    assert sys.modules["json"] is json
    assert sys.modules["torch"] is torch


def test_a_function_is_found_where_its_module_says(tmp_path):
    write_net(tmp_path)
    made = type(load(tmp_path, "net.py").module)
    assert made.__module__ == "net"
    assert getattr(sys.modules["net"], "Net") is made  # noqa: B009 - looked up as pickle does


def test_relative_imports_work_inside_a_package(tmp_path):
    package = tmp_path / "outer" / "inner"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").write_text("")
    (package.parent / "sizes.py").write_text("width = 3\n")
    source = "from torch import nn\nfrom ..sizes import width\ndef make():\n    return nn.Linear(2, width)\n"
    write_net(package, "m.py", source)
    loaded = load(package, "m.py")
    assert loaded.module.out_features == 3
    assert sys.modules["outer.inner.m"].make
    (package.parent / "sizes.py").write_text("width = 40\n")
    assert load(package, "m.py").module.out_features == 40


def test_source_lines_are_those_of_the_edited_file(tmp_path):
    import inspect

    for comment in ("# first", "# second"):
        write_net(tmp_path, source=NET_SOURCE.replace("return self.linear(x)", f"return self.linear(x)  {comment}"))
        assert comment in inspect.getsource(type(load(tmp_path, "net.py").module).forward)


def test_code_that_was_changed_after_it_was_hashed_does_not_run(tmp_path):
    write_net(tmp_path)
    mark = tmp_path / "mark"

    def swap(sha256: str) -> bool:
        (tmp_path / "net.py").write_text(f"import os\nos.mkdir({str(mark)!r})\n")
        return True

    from ace_studio.engine.load import load_model
    from ace_studio.engine.progress import Reporter
    from ace_studio.records.recipes.recipe import ModelChoice, Recipe

    recipe = Recipe(model=ModelChoice(source="net.py", entry="make_model"))
    load_model(recipe, tmp_path, is_trusted=swap, reporter=Reporter())
    assert not mark.exists()


def test_a_dataset_without_an_iterator_ends_at_its_length(tmp_path):
    dataset = (
        "\nclass Data:\n    def __len__(self):\n        return 3\n"
        "    def __getitem__(self, index):\n        return index\ndef data():\n    return Data()\n"
    )
    write_net(tmp_path, source=NET_SOURCE + dataset)
    assert list(load(tmp_path, "net.py", calibration="data").data.calibration()) == [0, 1, 2]


@pytest.mark.parametrize("value", ["numpy.array(0.5)", "numpy.float32(0.5)", "torch.tensor(0.5)", "0.5"])
def test_a_metric_comes_back_as_it_is(tmp_path, value):
    write_net(tmp_path, source=NET_SOURCE + f"\nimport numpy\ndef score(predict):\n    return {value}\n")
    assert float(load(tmp_path, "net.py", evaluate="score").data.evaluate(None)) == 0.5


def test_what_knows_its_length_still_does(tmp_path):
    source = (
        NET_SOURCE + "\ndef loader():\n    from torch.utils.data import DataLoader\n    return DataLoader([1, 2, 3])\n"
    )
    write_net(tmp_path, source=source)
    assert len(load(tmp_path, "net.py", calibration="loader").data.calibration()) == 3


def test_a_mapping_that_is_no_dict_is_one_example(tmp_path):
    source = (
        NET_SOURCE + "\nfrom collections import UserDict\ndef data():\n    return UserDict(ids=[1, 2], mask=[0, 1])\n"
    )
    write_net(tmp_path, source=source)
    assert load(tmp_path, "net.py", calibration="data").data.calibration()["mask"] == [0, 1]
