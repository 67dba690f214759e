"""Example inputs follow from the configuration."""

import pytest

from ace_studio.engine.load.huggingface.inputs import config_rows
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
    ],
)
def test_examples_follow_from_the_configuration(config, shapes):
    rows = config_rows(config)
    assert ({one.name: one.shape for one in rows[1]} if rows else None) == shapes
