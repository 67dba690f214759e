"""From a recipe to a live module, for every kind of source; nothing runs without trust."""

from __future__ import annotations

import contextlib
import sys
import zipfile
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from ace_studio.engine.capture import capture_model
from ace_studio.engine.flow import Example
from ace_studio.engine.load import LOADERS, files_sha256, inspect_file, load_model
from ace_studio.engine.progress import Cancelled, Reporter
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import Phase, Progress
from ace_studio.records.recipes.recipe import CaptureChoice, ModelChoice, Recipe
from tests.engine.load.samples import (
    NET_SOURCE,
    Payload,
    Plain,
    load,
    problem_of,
    write_bare_pickle,
    write_net,
    write_pt2,
    write_pt2_with_payload,
)

X = torch.tensor([[1.0, 2.0]])


def test_a_function_that_returns_module_and_examples(tmp_path):
    write_net(tmp_path)
    loaded = load(tmp_path, "net.py", entry="make_model")
    assert type(loaded.module).__name__ == "Net"
    assert not loaded.module.training
    assert [tuple(example.tensors()[0].shape) for example in loaded.data.examples] == [(1, 2), (4, 2)]
    assert loaded.source == tmp_path / "net.py"
    assert loaded.files == (tmp_path / "net.py",)
    assert all(parameter.requires_grad for parameter in loaded.module.parameters())


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("return Net()", 0),
        ("return Net(), []", 0),
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


def test_a_class_an_instance_and_a_dotted_name_serve_as_entry(tmp_path):
    source = NET_SOURCE + "\nready = Net()\nclass Zoo:\n    small = staticmethod(lambda: Net())\n"
    write_net(tmp_path, source=source)
    for entry in ("Net", "ready", "Zoo.small"):
        assert type(load(tmp_path, "net.py", entry=entry).module).__name__ == "Net"


def test_without_an_entry_the_one_that_plainly_makes_the_model_is_taken(tmp_path):
    write_net(tmp_path)
    assert load(tmp_path, "net.py").data.examples  # make_model, not the class beside it
    only_class = NET_SOURCE.replace("def make_model", "def _hidden")
    write_net(tmp_path, "only.py", only_class)
    assert type(load(tmp_path, "only.py").module).__name__ == "Net"
    write_net(tmp_path, "one.py", "from torch import nn\ndef thing():\n    return nn.Linear(2, 3)\ndef trace(): ...\n")
    assert type(load(tmp_path, "one.py", tracing="trace").module).__name__ == "Linear"


def test_without_an_entry_and_with_a_choice_the_choices_are_listed(tmp_path):
    write_net(tmp_path, source=NET_SOURCE + "\ndef build(): ...\n")
    problem = problem_of(tmp_path, "net.py")
    assert problem.code is ErrorCode.NOT_FOUND
    assert "make_model() in line" in problem.why
    write_net(tmp_path, "none.py", "x = 1\n")
    assert "no callable" in problem_of(tmp_path, "none.py").what


def test_a_missing_entry_names_the_nearest(tmp_path):
    write_net(tmp_path)
    problem = problem_of(tmp_path, "net.py", entry="make_modell")
    assert problem.code is ErrorCode.NOT_FOUND
    assert "did you mean 'make_model'?" in problem.remedy


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


def test_the_other_callables_are_found_and_run_lazily(tmp_path):
    write_net(tmp_path)
    loaded = load(tmp_path, "net.py", tracing="tracing_inputs", calibration="calibration", evaluate="evaluate")
    assert len(list(loaded.data.tracing())) == 1
    assert len(list(loaded.data.calibration())) == 3
    assert len(list(loaded.data.calibration())) == 3
    assert loaded.data.evaluate(loaded.module) == 3.0


def test_the_labelled_data_of_a_metric_are_a_callable_too(tmp_path):
    write_net(tmp_path, source=NET_SOURCE + "\ndef held_out():\n    return [(1, 2)]\n")
    assert load(tmp_path, "net.py", entry="Net", labelled="held_out").data.labelled() == [(1, 2)]
    assert (
        load(tmp_path, "net.py", entry="Net", labelled="held_out.npz").data.labelled is None
    )  # read where it is needed


def test_all_missing_callables_are_told_at_once(tmp_path):
    write_net(tmp_path)
    with pytest.raises(AceError) as caught:
        load(tmp_path, "net.py", tracing="tracing_input", evaluate="nothing_like_it")
    assert [problem.code for problem in caught.value.problems] == [ErrorCode.NOT_FOUND] * 2
    assert "tracing_inputs" in caught.value.problems[0].remedy


def test_a_function_that_cannot_take_what_it_gets_is_told_before_anything_runs(tmp_path):
    write_net(
        tmp_path, source=NET_SOURCE + "\ndef score(model, loader):\n    return 1.0\n\ndef data(n):\n    return []\n"
    )
    problem = problem_of(tmp_path, "net.py", entry="Net", evaluate="score")
    assert problem.what == "score(model, loader) cannot be called as [evaluate] function"
    assert "score(predict): missing a required argument: 'loader'" in problem.why
    assert problem.where.startswith(f"{tmp_path / 'net.py'}:") and "take predict alone" in problem.remedy
    assert "take no argument" in problem_of(tmp_path, "net.py", entry="Net", calibration="data").remedy


def test_callables_may_live_in_other_files(tmp_path):
    write_net(tmp_path)
    (tmp_path / "eval.py").write_text("import net\ndef score(predict):\n    return float(net.Net is type(predict))\n")
    loaded = load(tmp_path, "net.py", evaluate="eval.py:score")
    assert loaded.data.evaluate(loaded.module) == 1.0
    assert loaded.files == (tmp_path / "net.py", tmp_path / "eval.py")


# --- weights ---


@pytest.mark.parametrize("kind", ["safetensors", "zip", "legacy"])
@pytest.mark.parametrize("is_source", [True, False])
def test_weights_of_every_kind_go_into_what_the_factory_made(tmp_path, kind, is_source):
    write_net(tmp_path)
    trained = Plain().state_dict()
    if kind == "safetensors":
        save_file(trained, tmp_path / "w")
    else:
        torch.save(trained, tmp_path / "w", _use_new_zipfile_serialization=kind == "zip")
    if is_source:
        loaded = load(tmp_path, "w", entry="net.py:make_model")
    else:
        loaded = load(tmp_path, "net.py", entry="make_model", weights="w")
    torch.testing.assert_close(loaded.module.linear.weight.detach(), trained["linear.weight"])
    assert set(loaded.files) == {tmp_path / "net.py", tmp_path / "w"}


def test_plain_names_beside_weights_are_looked_up_in_the_factory_s_file(tmp_path):
    write_net(tmp_path)
    save_file(Plain().state_dict(), tmp_path / "w.safetensors")
    assert load(tmp_path, "w.safetensors", entry="net.py:Net", evaluate="evaluate").data.evaluate is not None


def test_weights_without_a_factory_say_what_to_name(tmp_path):
    save_file({"a": torch.zeros(1)}, tmp_path / "w.safetensors")
    assert "file.py:" in problem_of(tmp_path, "w.safetensors", entry="make").remedy
    assert "model.py:make_model" in problem_of(tmp_path, "w.safetensors").remedy


def test_weights_named_twice_are_an_error(tmp_path):
    write_net(tmp_path)
    save_file(Plain().state_dict(), tmp_path / "w.safetensors")
    problem = problem_of(tmp_path, "w.safetensors", entry="net.py:Net", weights="w.safetensors")
    assert problem.code is ErrorCode.RECIPE


def test_a_pickle_is_never_taken_for_weights(tmp_path):
    write_net(tmp_path)
    torch.save(Payload(tmp_path / "mark"), tmp_path / "w.pt")
    problem = problem_of(tmp_path, "net.py", weights="w.pt")
    assert problem.code is ErrorCode.BAD_FILE
    assert "mkdir" in problem.why
    assert not (tmp_path / "mark").exists()


# --- programs: pickles and .pt2 ---


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


def test_a_program_is_captured_again_and_says_which_size_it_was_exported_for(tmp_path):
    write_pt2(tmp_path / "m.pt2")
    loaded = load(tmp_path, "m.pt2")
    cpu, recipe = torch.device("cpu"), Recipe(capture=CaptureChoice(rungs=("export",)))
    captured, report = capture_model(loaded, loaded.data.examples, recipe, device=cpu, reporter=Reporter())
    assert captured.table.op_count == 1
    assert not report.warnings
    other = [*loaded.data.examples, Example.of(torch.zeros(3, 2))]
    with pytest.raises(AceError, match="cannot take example 2") as caught:
        capture_model(loaded, other, recipe, device=cpu, reporter=Reporter())
    assert caught.value.problem.code is ErrorCode.BAD_INPUT


def test_kinds_that_cannot_be_opened_say_so_without_asking_for_trust(tmp_path):
    assert problem_of(tmp_path.parent, tmp_path.name, trusted=False).code is ErrorCode.UNSUPPORTED


# --- trust ---


def test_no_payload_runs_without_trust(tmp_path):
    mark = tmp_path / "mark"
    torch.save(Payload(mark), tmp_path / "a.pt")
    write_bare_pickle(tmp_path / "b.pt", Payload(mark))
    write_pt2_with_payload(tmp_path / "c.pt2", mark)
    (tmp_path / "d.py").write_text(f"import os\nos.mkdir({str(mark)!r})\ndef make(): ...\n")
    for name in ("a.pt", "b.pt", "c.pt2", "d.py"):
        problem = problem_of(tmp_path, name, trusted=False)
        assert problem.code is ErrorCode.UNTRUSTED
        assert "--trust" in problem.remedy
        assert "Trust" in problem.remedy
        assert problem.details == f"sha256:{inspect_file(tmp_path / name).sha256}"
    assert not mark.exists()


def test_the_payload_of_the_samples_does_run_once_trusted(tmp_path):
    """Else the test above proves nothing."""
    mark = tmp_path / "mark"
    torch.save(Payload(mark), tmp_path / "a.pt")
    problem_of(tmp_path, "a.pt")
    assert mark.exists()
    mark.rmdir()
    write_pt2_with_payload(tmp_path / "c.pt2", mark)
    with contextlib.suppress(AceError):
        load(tmp_path, "c.pt2")
    assert mark.exists()


def test_every_file_that_would_run_is_asked_for_before_any_runs(tmp_path):
    mark = tmp_path / "mark"
    write_net(tmp_path, source=NET_SOURCE + f"\nimport os\nos.mkdir({str(mark)!r})\n")
    (tmp_path / "eval.py").write_text("def score(predict): ...\n")
    source, other = (inspect_file(tmp_path / name).sha256 for name in ("net.py", "eval.py"))
    for trusted, untrusted in (({source}, ["eval.py"]), ({other}, ["net.py"]), (set(), ["net.py", "eval.py"])):
        with pytest.raises(AceError) as caught:
            load(tmp_path, "net.py", evaluate="eval.py:score", trusted=trusted)
        assert [Path(problem.where).name for problem in caught.value.problems] == untrusted
        assert not mark.exists()
    load(tmp_path, "net.py", evaluate="eval.py:score", trusted={source, other})
    assert mark.exists()


def test_data_beside_trusted_code_needs_no_trust_of_its_own(tmp_path):
    write_net(tmp_path)
    save_file(Plain().state_dict(), tmp_path / "w.safetensors")
    asked = []
    recipe = Recipe(model=ModelChoice(source="w.safetensors", entry="net.py:Net"))
    load_model(recipe, tmp_path, is_trusted=lambda sha: asked.append(sha) or True, reporter=Reporter())
    assert asked == [inspect_file(tmp_path / "net.py").sha256]


def test_the_variable_that_makes_torch_run_pickles_is_dropped(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    write_net(
        tmp_path, source=NET_SOURCE + "\nimport os\nassert 'TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD' not in os.environ\n"
    )
    load(tmp_path, "net.py")


def test_a_damaged_program_is_told_before_its_code_runs(tmp_path):
    write_pt2(tmp_path / "m.pt2")
    with zipfile.ZipFile(tmp_path / "m.pt2") as archive:
        info = next(info for info in archive.infolist() if info.filename.endswith("weight_0"))
        content = archive.read(info)
    whole = bytearray((tmp_path / "m.pt2").read_bytes())
    whole[whole.index(content)] ^= 1
    (tmp_path / "m.pt2").write_bytes(whole)
    assert "checksum" in problem_of(tmp_path, "m.pt2").what


# --- the rest ---


def test_no_source_is_told():
    assert problem_of(Path("/"), "").code is ErrorCode.RECIPE


def test_the_hash_follows_every_file_and_not_the_folder(tmp_path):
    hashes = set()
    for folder, extra in (("a", ""), ("b", ""), ("c", "# changed\n")):
        (tmp_path / folder).mkdir()
        write_net(tmp_path / folder, source="import near\n" + NET_SOURCE)
        (tmp_path / folder / "near.py").write_text("x = 1\n" + extra)
        loaded = load(tmp_path / folder, "net.py")
        assert loaded.files == (tmp_path / folder / "net.py", tmp_path / folder / "near.py")
        assert files_sha256(loaded.files) == loaded.sha256
        hashes.add(loaded.sha256)
    assert len(hashes) == 2


def test_loading_reports_its_phase_and_can_be_cancelled(tmp_path):
    write_net(tmp_path)
    events = []
    load(tmp_path, "net.py", reporter=Reporter(events.append))
    assert isinstance(events[0], Progress)
    assert events[0].phase is Phase.LOAD
    with pytest.raises(Cancelled):
        load(tmp_path, "net.py", reporter=Reporter(is_cancelled=lambda: True))


def test_every_loader_that_opens_is_tried_here():
    assert {name for name, row in LOADERS.items() if row.is_openable} == {
        "python",
        "safetensors",
        "state-dict",
        "pickle-module",
        "pt2",
        "onnx",  # in test_onnx_model.py
        "torchscript",  # in test_torchscript.py
        "huggingface",  # in test_huggingface.py
        "huggingface-code",
        "timm",  # in test_named_models.py
        "torchvision",
    }
