"""From a recipe to a live module, for every kind of source; nothing runs without trust."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from ace_studio.engine.capture import capture_model
from ace_studio.engine.flow import Example
from ace_studio.engine.load import LOADERS, files_sha256
from ace_studio.engine.progress import Cancelled, Reporter
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import Phase, Progress
from ace_studio.records.recipes.recipe import CaptureChoice, Recipe
from tests.engine.load.samples import NET_SOURCE, Payload, Plain, load, problem_of, write_net, write_pt2


def test_a_function_that_returns_module_and_examples(tmp_path):
    write_net(tmp_path)
    loaded = load(tmp_path, "net.py", entry="make_model")
    assert type(loaded.module).__name__ == "Net"
    assert not loaded.module.training
    assert [tuple(example.tensors()[0].shape) for example in loaded.data.examples] == [(1, 2), (4, 2)]
    assert loaded.source == tmp_path / "net.py"
    assert loaded.files == (tmp_path / "net.py",)
    assert all(parameter.requires_grad for parameter in loaded.module.parameters())


def test_a_class_an_instance_and_a_dotted_name_serve_as_entry(tmp_path):
    source = NET_SOURCE + "\nready = Net()\nclass Zoo:\n    small = staticmethod(lambda: Net())\n"
    write_net(tmp_path, source=source)
    for entry in ("Net", "ready", "Zoo.small"):
        assert type(load(tmp_path, "net.py", entry=entry).module).__name__ == "Net"


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


def write_shards(folder: Path, names=("a.safetensors", "b.bin")) -> dict[str, Tensor]:
    """The weights of `Plain` in two files, and their index."""
    trained = Plain().state_dict()
    table = dict(zip(trained, names, strict=True))
    for key, name in table.items():
        save = save_file if name.endswith(".safetensors") else torch.save
        save({key: trained[key]}, folder / name)
    (folder / "w.index.json").write_text(json.dumps({"metadata": {}, "weight_map": table}))
    return trained


@pytest.mark.parametrize("is_source", [True, False])
def test_weights_in_several_files_are_loaded_by_their_index(tmp_path, is_source):
    write_net(tmp_path)
    trained = write_shards(tmp_path)
    if is_source:
        loaded = load(tmp_path, "w.index.json", entry="net.py:make_model")
    else:
        loaded = load(tmp_path, "net.py", entry="make_model", weights="w.index.json")
    for name, tensor in trained.items():
        torch.testing.assert_close(loaded.module.state_dict()[name], tensor)
    names = {"net.py", "w.index.json", "a.safetensors", "b.bin"}
    assert set(loaded.files) == {tmp_path / name for name in names}, "a change of any of them is noticed"


def test_an_index_is_refused_with_what_it_lacks_and_runs_no_code(tmp_path):
    write_net(tmp_path)
    write_shards(tmp_path)
    assert "holds weights alone" in problem_of(tmp_path, "w.index.json").what
    torch.save(Payload(tmp_path / "mark"), tmp_path / "b.bin")
    problem = problem_of(tmp_path, "net.py", weights="w.index.json")
    assert problem.code is ErrorCode.BAD_FILE and "mkdir" in problem.why and not (tmp_path / "mark").exists()
    (tmp_path / "b.bin").unlink()
    problem = problem_of(tmp_path, "net.py", weights="w.index.json")
    assert problem.code is ErrorCode.BAD_FILE and problem.why == "missing: b.bin"
    write_shards(tmp_path, names=("a.safetensors", "w.index.json"))
    assert problem_of(tmp_path, "net.py", weights="w.index.json").code is ErrorCode.BAD_FILE


def test_plain_names_beside_weights_are_looked_up_in_the_factory_s_file(tmp_path):
    write_net(tmp_path)
    save_file(Plain().state_dict(), tmp_path / "w.safetensors")
    assert load(tmp_path, "w.safetensors", entry="net.py:Net", evaluate="evaluate").data.evaluate is not None


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


def test_the_variable_that_makes_torch_run_pickles_is_dropped(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    write_net(
        tmp_path, source=NET_SOURCE + "\nimport os\nassert 'TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD' not in os.environ\n"
    )
    load(tmp_path, "net.py")


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
        "weights-index",
        "pickle-module",
        "pt2",
        "onnx",  # in test_onnx_model.py
        "torchscript",  # in test_torchscript.py
        "huggingface",  # in test_huggingface.py
        "huggingface-code",
        "timm",  # in test_named_models.py
        "torchvision",
    }
