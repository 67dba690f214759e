"""A live module is made from every kind of file, or the reason is given."""

import sys
import zipfile

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from ace_studio.engine.examples.reader import MAX_EXAMPLES
from ace_studio.engine.load import inspect_file, load_model
from ace_studio.engine.progress import Reporter
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.recipe import LimitsChoice, ModelChoice, Recipe
from tests.engine.load.samples import NET_SOURCE, Plain, load, problem_of, write_net, write_pt2


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("return Net()", 2),  # proposed
        ("return Net(), []", 2),
        ("return Net(), torch.zeros(1, 2)", 1),
        ("return Net(), (torch.zeros(1, 2),)", 1),
        ("return Net(), {'x': torch.zeros(1, 2)}", 1),
        ("return Net(), [torch.zeros(1, 2), torch.zeros(2, 2)]", 2),
        ("return Net(), ((torch.zeros(n, 2),) for n in (1, 2, 3))", 3),
    ],
)
def test_examples_are_one_or_a_list_of_them(tmp_path, body, count):
    write_net(tmp_path, source=NET_SOURCE + f"\ndef entry():\n    {body}\n")
    loaded = load(tmp_path, "net.py", entry="entry")
    assert len(loaded.data.examples) == count
    for example in loaded.data.examples:
        assert example.call(loaded.module).shape[1] == 3


def test_a_script_that_keeps_its_model_in_a_variable_needs_no_function(tmp_path):
    write_net(tmp_path, "script.py", source=NET_SOURCE.replace("def make_model", "def _make_model") + (
        "\nmodel = Net()\ntorch.nn.init.constant_(next(model.parameters()), 0.25)\n"
    ))  # fmt: skip
    loaded = load(tmp_path, "script.py")
    assert type(loaded.module).__name__ == "Net"
    assert (next(loaded.module.parameters()) == 0.25).all()


@pytest.mark.parametrize(("more", "is_told"), [("", True), ("model(torch.ones(1, 2)).sum().backward()\n", False)])
def test_a_variable_that_holds_a_new_model_of_the_file_is_said_to_have_random_weights(tmp_path, more, is_told):
    write_net(tmp_path, "script.py", source=NET_SOURCE + "\nmodel = Net()\n" + more)
    reporter = Reporter()
    load(tmp_path, "script.py", entry="model", reporter=reporter)
    assert ("random-weights" in {one.code for one in reporter.warnings}) is is_told


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return None", "return model"),
        ("return Net", "Net(...)"),
        ("return Net().state_dict()", "state dict"),
        ("return Net(), 1, 2", "in one tuple"),
        ("return 'model'", "an object of type str"),
    ],
)
def test_an_entry_that_gives_no_module_says_what_it_gave(tmp_path, body, words):
    write_net(tmp_path, source=NET_SOURCE + f"\ndef entry():\n    {body}\n")
    problem = problem_of(tmp_path, "net.py", entry="entry")
    assert problem.code is ErrorCode.USER_CODE
    assert words in problem.as_text()


def test_an_entry_that_needs_arguments_is_told_before_it_is_called(tmp_path):
    write_net(tmp_path, source=NET_SOURCE + "\ndef entry(classes):\n    return Net()\n")
    assert "'classes'" in problem_of(tmp_path, "net.py", entry="entry").why


def test_weights_without_a_factory_say_what_to_name(tmp_path):
    save_file({"a": torch.zeros(1)}, tmp_path / "w.safetensors")
    assert "file.py:" in problem_of(tmp_path, "w.safetensors", entry="make").remedy
    assert "model.py:make_model" in problem_of(tmp_path, "w.safetensors").remedy


@pytest.mark.parametrize("is_zip", [True, False])
def test_a_whole_module_is_loaded_once_trusted(tmp_path, is_zip):
    torch.save(Plain().train(), tmp_path / "m.pt", _use_new_zipfile_serialization=is_zip)
    loaded = load(tmp_path, "m.pt")
    assert isinstance(loaded.module, Plain)
    assert not loaded.module.training


def test_a_module_saved_by_a_script_finds_its_class_in_the_entry_s_file(tmp_path, monkeypatch):
    write_net(tmp_path)
    made = load(tmp_path, "net.py", entry="Net").module
    type(made).__module__ = "__main__"
    monkeypatch.setattr(sys.modules["__main__"], "Net", type(made), raising=False)
    torch.save(made, tmp_path / "m.pt")
    monkeypatch.undo()
    assert "script.py:ClassName" in problem_of(tmp_path, "m.pt").remedy
    assert type(load(tmp_path, "m.pt", entry="net.py:Net").module).__name__ == "Net"


def test_a_module_whose_class_is_gone_says_where_to_put_it(tmp_path):
    write_net(tmp_path)
    torch.save(load(tmp_path, "net.py", entry="Net").module, tmp_path / "m.pt")
    assert load(tmp_path, "m.pt").module  # the class lies beside it
    (tmp_path / "net.py").rename(tmp_path / "moved.py")
    assert problem_of(tmp_path, "m.pt").code is ErrorCode.NOT_FOUND


def test_a_checkpoint_with_other_objects_gives_its_weights_to_the_factory(tmp_path):
    write_net(tmp_path)
    trained = Plain().state_dict()
    torch.save({"model": trained, "args": nn.Identity()}, tmp_path / "c.pt")
    assert inspect_file(tmp_path / "c.pt").trust == "code"
    loaded = load(tmp_path, "c.pt", entry="net.py:Net")
    torch.testing.assert_close(loaded.module.linear.weight.detach(), trained["linear.weight"])
    assert "make_model" in problem_of(tmp_path, "c.pt").remedy


def test_an_exported_program_brings_its_example(tmp_path):
    write_pt2(tmp_path / "m.pt2")
    loaded = load(tmp_path, "m.pt2")
    assert tuple(loaded.data.examples[0].args[0].shape) == (1, 2)
    assert loaded.data.examples[0].call(loaded.module).shape == (1, 3)


def test_a_damaged_program_is_told_before_its_code_runs(tmp_path):
    write_pt2(tmp_path / "m.pt2")
    with zipfile.ZipFile(tmp_path / "m.pt2") as archive:
        info = next(info for info in archive.infolist() if info.filename.endswith("weight_0"))
        content = archive.read(info)
    whole = bytearray((tmp_path / "m.pt2").read_bytes())
    whole[whole.index(content)] ^= 1
    (tmp_path / "m.pt2").write_bytes(whole)
    assert "checksum" in problem_of(tmp_path, "m.pt2").what


ENDLESS = """
import itertools
import torch
from torch import nn


def make():
    return nn.Linear(2, 2), (torch.zeros(size, 2) for size in itertools.count(1))
"""


def test_an_endless_generator_of_the_entry_gives_as_many_examples_as_a_tracing_function(tmp_path):
    (tmp_path / "m.py").write_text(ENDLESS)
    assert len(load(tmp_path, "m.py", entry="make").data.examples) == MAX_EXAMPLES


def test_the_limit_on_examples_holds_for_a_generator_of_the_entry(tmp_path):
    (tmp_path / "m.py").write_text(ENDLESS)
    recipe = Recipe(model=ModelChoice(source="m.py", entry="make"), limits=LimitsChoice(examples=5))
    with pytest.raises(AceError, match="gave more than 5 examples"):
        load_model(recipe, tmp_path, is_trusted=lambda _: True, reporter=Reporter())
