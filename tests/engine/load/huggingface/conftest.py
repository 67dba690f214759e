"""A small classifier of transformers, built once for the tests of this folder."""

import importlib.util

import pytest

from ace_studio.engine.load import make_importable
from tests.engine.load.huggingface.folders import SMALL


@pytest.fixture(scope="session")
def transformers():
    if importlib.util.find_spec("transformers") is None:
        pytest.skip("transformers is not installed")
    make_importable()
    import transformers

    transformers.utils.logging.disable_progress_bar()
    return transformers


@pytest.fixture(scope="session")
def bert(transformers, tmp_path_factory):
    """A classifier with a vocabulary of 60 and 32 places, saved in one file."""
    folder = tmp_path_factory.mktemp("hf") / "bert"
    config = transformers.BertConfig(vocab_size=60, max_position_embeddings=32, num_labels=3, **SMALL)
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    return folder
