"""Folders of Hugging Face: the class from the configuration, the weights with an account, examples that run."""

import importlib.util
import json

import pytest
import torch

from ace_studio.engine.flow import tensor_leaves
from ace_studio.engine.load import inspect_file, make_importable
from ace_studio.engine.load.huggingface.inputs import config_rows
from ace_studio.engine.progress import Reporter
from ace_studio.records.errors import AceError, ErrorCode
from tests.engine.load.samples import load, problem_of

if importlib.util.find_spec("transformers") is None:
    pytest.skip("transformers is not installed", allow_module_level=True)

SMALL = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}


@pytest.fixture(scope="module")
def transformers():
    make_importable()
    import transformers

    transformers.utils.logging.disable_progress_bar()
    return transformers


@pytest.fixture(scope="module")
def bert(transformers, tmp_path_factory):
    """A classifier with a vocabulary of 60 and 32 places, saved in one file."""
    folder = tmp_path_factory.mktemp("hf") / "bert"
    config = transformers.BertConfig(vocab_size=60, max_position_embeddings=32, num_labels=3, **SMALL)
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    return folder


def copy(folder, to):
    to.mkdir()
    for file in folder.iterdir():
        (to / file.name).write_bytes(file.read_bytes())
    return to


def change_config(folder, **changes):
    path = folder / "config.json"
    config = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({key: value for key, value in config.items() if value is not None}))


def warned(reporter):
    return {warning.code: warning.what for warning in reporter.warnings}


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


def test_the_numbers_of_the_examples_stay_inside_the_vocabulary_and_the_lengths_inside_the_places(bert):
    change = load(bert.parent, "bert").data.examples
    ids = [example.args[0] for example in change]
    assert all(tensor.max() < 60 for tensor in ids)
    assert [tensor.shape[1] for tensor in ids] == [16, 24]
    assert all(bool((example.args[1] == 1).all()) for example in change)  # the attention mask


def test_what_is_in_the_folder_can_be_seen_without_building_it(bert):
    report = inspect_file(bert)
    assert (report.kind, report.trust) == ("huggingface", "data")
    assert "classifier.weight" in {tensor.name for tensor in report.tensors}
    assert [row["input_ids"].shape for row in report.inputs] == [(1, 16), (2, 24)]
    assert {row["attention_mask"].values for row in report.inputs} == {"ones"}
    assert {row["input_ids"].values for row in report.inputs} == {"zeros"}  # random numbers go up to 100, beyond 60
    assert "BertForSequenceClassification" in report.notes[0]
    assert [entry.name for entry in report.entries] == ["BertForSequenceClassification"]
    assert inspect_file(bert / "config.json").path == str(bert)  # a file dialog cannot give a folder


def test_the_configuration_opens_its_folder(bert):
    assert load(bert, "config.json").source == bert


def test_weights_opened_by_themselves_point_to_their_folder(bert):
    assert f"open its folder, {bert.name}" in problem_of(bert, "model.safetensors").remedy


def test_the_entry_may_name_another_class_and_what_it_lacks_is_said(bert, transformers):
    reporter = Reporter()
    loaded = load(bert.parent, "bert", entry="AutoModelForTokenClassification", reporter=reporter)
    assert isinstance(loaded.module, transformers.BertForTokenClassification)
    assert "bert.pooler" in warned(reporter)["weights-left-out"]
    loaded = load(bert.parent, "bert", entry="BertModel", reporter=(reporter := Reporter()))
    assert type(loaded.module) is transformers.BertModel
    assert "classifier.weight" in warned(reporter)["weights-left-out"]


def test_a_class_that_is_not_there_is_answered_with_the_nearest(bert):
    problem = problem_of(bert.parent, "bert", entry="AutoModelForSequenceClasification")
    assert problem.code is ErrorCode.NOT_FOUND
    assert problem.remedy == "did you mean 'AutoModelForSequenceClassification'?"


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
    with pytest.raises(AceError, match="1 are not here"):
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
    assert problem_of(tmp_path, "cut").code is ErrorCode.UNSUPPORTED  # no model, just a folder
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", "architectures": ["BertModel"]}))
    (folder / "model.safetensors").unlink()
    index = {"weight_map": {"a": "../outside.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "outside of its folder" in problem_of(tmp_path, "cut").what


def test_without_transformers_the_line_that_installs_it_is_said(bert, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    problem = problem_of(bert.parent, "bert")
    assert problem.code is ErrorCode.NOT_INSTALLED
    assert problem.remedy.endswith("-m pip install transformers")


@pytest.mark.parametrize(
    ("config", "shapes"),
    [
        ({"vocab_size": 500}, {"input_ids": (2, 24), "attention_mask": (2, 24)}),
        ({"vocab_size": 500, "n_positions": 10}, {"input_ids": (2, 8), "attention_mask": (2, 8)}),
        (
            {"vocab_size": 500, "is_encoder_decoder": True},
            {"input_ids": (2, 24), "attention_mask": (2, 24), "decoder_input_ids": (2, 12)},
        ),
        ({"image_size": 32, "num_channels": 1}, {"pixel_values": (2, 1, 32, 32)}),
        ({"image_size": [32, 48], "patch_size": 8}, {"pixel_values": (2, 3, 32, 48)}),
        ({"image_size": 16, "num_frames": 4, "num_channels": 3}, {"pixel_values": (2, 4, 3, 16, 16)}),
        ({"num_channels": 3}, {"pixel_values": (2, 3, 224, 224)}),
        (
            {"text_config": {"vocab_size": 500}, "vision_config": {"image_size": 32}},
            {"input_ids": (2, 24), "attention_mask": (2, 24), "pixel_values": (2, 3, 32, 32)},
        ),
        ({"vocab_size": 20, "conv_dim": [8], "conv_stride": [5]}, {"input_values": (2, 9600)}),
        (
            {"num_mel_bins": 8, "max_source_positions": 30, "is_encoder_decoder": True, "vocab_size": 500},
            {"input_features": (2, 8, 60), "decoder_input_ids": (2, 12)},
        ),
        ({"num_mel_bins": 128, "max_length": 64}, {"input_values": (2, 64, 128)}),
        ({"hidden_size": 3}, None),
    ],
)
def test_examples_follow_from_the_configuration(config, shapes):
    rows = config_rows(config)
    assert ({one.name: one.shape for one in rows[1]} if rows else None) == shapes


def llama(transformers, folder):
    config = transformers.LlamaConfig(vocab_size=50, num_key_value_heads=1, max_position_embeddings=64, **SMALL)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)


def test_a_language_model_opens_as_one_step_that_continues_what_its_cache_holds(transformers, tmp_path):
    llama(transformers, tmp_path / "lm")
    whole = load(tmp_path, "lm", trusted=False).module
    step = load(tmp_path, "lm", entry="step", trusted=False)
    lengths = [example.kwargs["cache"][0][0].shape[2] for example in step.data.examples]
    assert len(set(lengths)) == 2
    text = torch.randint(0, 50, (1, 12))
    with torch.no_grad():
        expected = whole(text)
        expected = expected.logits if hasattr(expected, "logits") else expected[0]
        held = step.module.model(input_ids=text[:, :4], use_cache=True).past_key_values
        cache = [(layer.keys, layer.values) for layer in held.layers]
        for at in range(4, 12):
            scores, cache = step.module(text[:, at : at + 1], cache)
    assert cache[0][0].shape[2] == 12
    assert torch.allclose(scores[:, -1], expected[:, -1], atol=1e-5)


def test_the_step_is_offered_where_there_is_one_and_refused_elsewhere(transformers, bert, tmp_path):
    llama(transformers, tmp_path / "lm")
    assert "step" in [entry.name for entry in inspect_file(tmp_path / "lm").entries]
    assert "step" not in [entry.name for entry in inspect_file(bert).entries]
    problem = problem_of(bert.parent, "bert", entry="step", trusted=False)
    assert problem.code is ErrorCode.UNSUPPORTED
    assert "no causal language model" in problem.why
