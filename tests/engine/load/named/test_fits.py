"""A file of weights says what it holds and which known models have its tensors."""

from dataclasses import replace

import pytest

from ace_studio.engine.load.named import fits
from ace_studio.engine.load.named.fits import fitting_models, weights_summary
from ace_studio.engine.load.named.loader import tensors_of
from ace_studio.engine.load.named.models import find_model
from ace_studio.records.messages import StoredTensor
from ace_studio.records.recipes.named_source import named_source


def tensors(*names, shape=(4, 3)):
    return [StoredTensor(name=name, dtype="float32", shape=shape) for name in names]


def test_a_known_model_is_found_below_the_keys_of_a_checkpoint(monkeypatch):
    plain = [(one.name, one.shape) for one in tensors("conv.weight", "fc.weight")]
    monkeypatch.setattr(
        fits, "_known", lambda: {fits.hash_of_tensors(plain): ["torchvision:net", "absent_package:net"]}
    )
    inner = tensors("state_dict.module.conv.weight", "state_dict.module.fc.weight", "state_dict.bn.num_batches_tracked")
    assert fitting_models(inner) == ("torchvision:net",)
    assert fitting_models(tensors("conv.weight", "fc.weight", shape=(4, 4))) == ()


def test_the_summary_counts_tensors_and_values_and_names_a_known_family():
    said = weights_summary(tensors("bert.a.weight", "bert.b.weight"))
    assert said[0] == "2 tensors with 24 values: 2 float32"
    assert "begin with 'bert.'" in said[1]
    assert "BERT" in said[2]
    assert weights_summary(()) == ()


def test_the_table_that_ships_knows_the_usual_models():
    known = {name for names in fits._known().values() for name in names}
    assert {"torchvision:resnet18", "torchvision:mobilenet_v2", "timm:vit_base_patch16_224"} <= known


def test_a_quantized_model_with_the_same_tensors_is_offered_last(monkeypatch):
    plain = [(one.name, one.shape) for one in tensors("conv.weight")]
    known = ["torchvision:quantized_net", "torchvision:net"]
    monkeypatch.setattr(fits, "_known", lambda: {fits.hash_of_tensors(plain): known})
    assert fitting_models(tensors("conv.weight")) == ("torchvision:net", "torchvision:quantized_net")


@pytest.mark.parametrize("name", ["torchvision:resnet50", "torchvision:squeezenet1_0", "timm:vit_tiny_patch16_224"])
def test_weights_of_another_number_of_classes_fit_a_known_model_that_is_built_with_that_number(name):
    made = find_model(replace(named_source(name), classes=7)).build_on_meta()
    found = fitting_models(tensors_of(made))
    assert f"{name}?num_classes=7" in found
    again = find_model(named_source(found[0])).build_on_meta()
    assert {one.name: one.shape for one in tensors_of(again)} == {one.name: one.shape for one in tensors_of(made)}
    assert all("?" not in one for one in fitting_models(tensors_of(find_model(named_source(name)).build_on_meta())))
