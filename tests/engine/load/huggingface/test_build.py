"""Folders of Hugging Face: the class from the configuration, the weights with an account, examples that run."""

import json

import pytest
import torch

from ace_studio.engine.flow import tensor_leaves
from ace_studio.engine.load import inspect_file
from ace_studio.records.errors import AceError, ErrorCode
from tests.engine.load.huggingface.folders import SMALL, change_config, copy
from tests.engine.load.samples import load, problem_of


def test_the_class_is_that_of_the_configuration_and_the_examples_run(bert, transformers):
    loaded = load(bert.parent, "bert", trusted=False)  # tensors only: no trust is needed

    assert type(loaded.module) is transformers.BertForSequenceClassification
    assert not loaded.module.training
    assert {path.name for path in loaded.files} == {"config.json", "model.safetensors"}
    kept = transformers.BertForSequenceClassification.from_pretrained(bert).state_dict()
    assert all(torch.equal(tensor, kept[name]) for name, tensor in loaded.module.state_dict().items())
    with torch.no_grad():
        shapes = [tuple(example.call(loaded.module).logits.shape) for example in loaded.data.examples]
    assert shapes == [(1, 3), (2, 3)]


def test_weights_opened_by_themselves_point_to_their_folder(bert):
    assert f"open its folder, {bert.name}" in problem_of(bert, "model.safetensors").remedy


def test_weights_of_another_model_are_refused_with_an_account(bert, transformers, tmp_path):
    folder = copy(bert, tmp_path / "mixed")
    other = transformers.ViTModel(transformers.ViTConfig(image_size=8, patch_size=4, **SMALL))
    other.save_pretrained(tmp_path / "vit")
    (folder / "model.safetensors").write_bytes((tmp_path / "vit" / "model.safetensors").read_bytes())
    problem = problem_of(tmp_path, "mixed")
    assert problem.code is ErrorCode.BAD_FILE
    assert "missing" in problem.why and "unknown" in problem.why


def test_a_configuration_of_another_size_is_told_apart_from_missing_weights(bert, tmp_path):
    folder = copy(bert, tmp_path / "wide")
    change_config(folder, intermediate_size=20)
    problem = problem_of(tmp_path, "wide")
    assert problem.code is ErrorCode.BAD_FILE
    assert "different sizes" in problem.remedy


def test_shards_are_read_together_and_a_missing_one_is_named(bert, transformers, tmp_path):
    model = transformers.BertForSequenceClassification.from_pretrained(bert)
    model.save_pretrained(tmp_path / "parts", max_shard_size="5KB")
    shards = sorted((tmp_path / "parts").glob("model-*.safetensors"))
    assert len(shards) > 1
    state = load(tmp_path, "parts").module.state_dict()
    assert all(torch.equal(tensor, state[name]) for name, tensor in model.state_dict().items())
    assert {tensor.name for tensor in inspect_file(tmp_path / "parts").tensors} == set(state)
    shards[0].unlink()
    problem = problem_of(tmp_path, "parts")
    assert problem.code is ErrorCode.BAD_FILE
    assert shards[0].name in problem.why
    with pytest.raises(AceError, match=r"not beside it \(1 of"):
        inspect_file(tmp_path / "parts")


def test_weights_in_a_pickle_are_read_as_tensors_and_never_run(bert, transformers, tmp_path):
    folder = copy(bert, tmp_path / "old")
    (folder / "model.safetensors").unlink()
    state = transformers.BertForSequenceClassification.from_pretrained(bert).state_dict()
    torch.save(state, folder / "pytorch_model.bin")
    assert torch.equal(load(tmp_path, "old").module.state_dict()["classifier.weight"], state["classifier.weight"])
    torch.save({"x": pytest.raises}, folder / "pytorch_model.bin")
    assert "holds more than tensors" in problem_of(tmp_path, "old").what


def test_weights_stored_in_half_precision_are_opened_in_float32(transformers, bert, tmp_path):
    transformers.BertForSequenceClassification.from_pretrained(bert).half().save_pretrained(tmp_path / "half")
    assert {tensor.dtype for tensor in load(tmp_path, "half").module.parameters()} == {torch.float32}


def test_a_folder_without_weights_says_so_and_takes_them_from_elsewhere(bert, transformers, tmp_path):
    folder = copy(bert, tmp_path / "bare")
    (folder / "model.safetensors").rename(tmp_path / "w.safetensors")
    assert "without weights" in problem_of(tmp_path, "bare").what
    state = load(tmp_path, "bare", weights="w.safetensors").module.state_dict()
    kept = transformers.BertForSequenceClassification.from_pretrained(bert).state_dict()
    assert torch.equal(state["classifier.weight"], kept["classifier.weight"])


def test_a_language_model_gives_tensors_alone(transformers, tmp_path):
    config = transformers.GPT2Config(vocab_size=120, n_positions=32, n_embd=8, n_layer=1, n_head=2)
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path / "gpt2")
    loaded = load(tmp_path, "gpt2")
    with torch.no_grad():
        result = loaded.data.examples[1].call(loaded.module)
    assert set(result) == {"logits"}  # no cache of keys and values
    assert [leaf.shape for leaf in tensor_leaves(result.logits)] == [(2, 24, 120)]


OWN_CODE = """
from transformers import PreTrainedModel, PretrainedConfig
import torch

class MineConfig(PretrainedConfig):
    model_type = "mine-of-a-test"

class MineModel(PreTrainedModel):
    config_class = MineConfig
    def __init__(self, config):
        super().__init__(config)
        self.linear = torch.nn.Linear(2, 3)
        self.post_init()
    def forward(self, input_values):
        return self.linear(input_values)
"""


def test_code_in_the_folder_runs_only_when_trusted(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "code_of_mine.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w')\n{OWN_CODE}")
    auto = {"AutoConfig": "code_of_mine.MineConfig", "AutoModel": "code_of_mine.MineModel"}
    (folder / "config.json").write_text(
        json.dumps({"model_type": "mine-of-a-test", "architectures": ["MineModel"], "auto_map": auto})
    )
    from safetensors.torch import save_file

    save_file({"linear.weight": torch.ones(3, 2), "linear.bias": torch.zeros(3)}, folder / "model.safetensors")

    report = inspect_file(folder)
    assert (report.kind, report.trust) == ("huggingface-code", "code")
    assert "code_of_mine.py" in report.would_run[0]
    problem = problem_of(tmp_path, "mine", trusted=False)
    assert problem.code is ErrorCode.UNTRUSTED
    assert problem.where == str(folder / "code_of_mine.py")
    assert not (tmp_path / "mark").exists()

    module = load(tmp_path, "mine", trusted=True).module

    assert (tmp_path / "mark").exists()
    assert module(torch.ones(1, 2)).tolist() == [[2, 2, 2]]


def test_a_damaged_folder_says_what_is_wrong(bert, tmp_path):
    folder = copy(bert, tmp_path / "cut")
    (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:-10])
    assert "damaged or incomplete safetensors" in problem_of(tmp_path, "cut").what
    (folder / "config.json").write_text("{")
    assert problem_of(tmp_path, "cut").what == "config.json is not valid JSON"
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", "architectures": ["BertModel"]}))
    (folder / "model.safetensors").unlink()
    index = {"weight_map": {"a": "../outside.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "outside of its folder" in problem_of(tmp_path, "cut").what


@pytest.mark.parametrize("more", [{"checkpoint_path": "/elsewhere.pth"}, {"checkpoint_path": "up/../../x.pth"}])
@pytest.mark.parametrize("is_deep", [True, False])
def test_a_configuration_names_no_checkpoint_for_timm_to_read(bert, tmp_path, more, is_deep):
    change_config(copy(bert, tmp_path / "names"), **({"model_args": [more]} if is_deep else more))
    problem = problem_of(tmp_path, "names")
    assert problem.code is ErrorCode.BAD_FILE and problem.what == "config.json names a file for timm to read"


def test_a_configuration_names_no_folder_for_timm_to_read(bert, tmp_path):
    change_config(copy(bert, tmp_path / "names"), architecture="local-dir:/elsewhere")
    assert problem_of(tmp_path, "names").what == "config.json names a file for timm to read"
    change_config(tmp_path / "names", architecture='a "checkpoint_path": "of words"')
    assert load(tmp_path, "names").module
