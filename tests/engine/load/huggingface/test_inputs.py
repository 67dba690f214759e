"""Example inputs follow from the configuration."""

import pytest

from ace_studio.engine.examples.rows import made_up_tensor
from ace_studio.engine.load.huggingface.folder import read_folder
from ace_studio.engine.load.huggingface.inputs import config_rows
from ace_studio.records.tensors import read_values
from tests.engine.load.samples import load


def test_the_numbers_of_the_examples_stay_inside_the_vocabulary_and_the_lengths_inside_the_places(bert):
    change = load(bert.parent, "bert").data.examples
    ids = [example.args[0] for example in change]
    assert all(tensor.max() < 60 for tensor in ids)
    assert [tensor.shape[1] for tensor in ids] == [16, 24]
    assert all(bool((example.args[1] == 1).all()) for example in change)  # the attention mask


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
        ({"num_channels": 3, "preprocessor": {"size": {"shortest_edge": 96}}}, {"pixel_values": (2, 3, 96, 96)}),
        (
            {"num_channels": 3, "preprocessor": {"size": 99, "crop_size": {"height": 64, "width": 48}}},
            {"pixel_values": (2, 3, 64, 48)},
        ),
        (
            {"image_size": 32, "num_channels": 3, "preprocessor": {"size": {"height": 99, "width": 99}}},
            {"pixel_values": (2, 3, 32, 32)},
        ),
        (
            {"vocab_size": 500, "tokenizer": {"model_max_length": 12}},
            {"input_ids": (2, 10), "attention_mask": (2, 10)},
        ),
    ],
)
def test_examples_follow_from_the_configuration(config, shapes):
    rows = config_rows(config)
    assert ({one.name: one.shape for one in rows[1]} if rows else None) == shapes


@pytest.mark.parametrize(
    ("preprocessor", "values"),
    [
        ({"image_mean": [0.5, 0.4], "image_std": [0.5, 0.2]}, "random -2..3"),
        ({"do_normalize": False}, "random 0..1"),
        ({"do_rescale": False, "image_mean": [0.5], "image_std": [0.5]}, "random"),
        ({"image_mean": "odd", "do_normalize": True}, "random"),
        ({}, "random"),
    ],
)
def test_the_values_of_pictures_are_those_that_the_preprocessor_gives(preprocessor, values):
    (picture,) = config_rows({"image_size": 8, "num_channels": 3, "preprocessor": preprocessor})[0]
    assert picture.spec().values == values
    numbers = made_up_tensor(picture.spec(), number=0)
    if ".." in values:
        low, high = read_values(values).numbers
        assert low <= numbers.min() < numbers.max() <= high


def test_the_files_beside_the_configuration_are_read_and_a_damaged_one_is_left_out(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "resnet", "num_channels": 3}')
    (tmp_path / "preprocessor_config.json").write_text('{"size": 64}')
    (tmp_path / "tokenizer_config.json").write_text("damaged")
    facts = read_folder(tmp_path).facts
    assert facts["preprocessor"] == {"size": 64}
    assert "tokenizer" not in facts
