"""Models of installed packages, by name."""

import pytest

from ace_studio.records.recipes.named_source import NamedSource, named_source


def test_the_last_part_of_a_path_names_a_model():
    assert named_source("/work/timm:resnet18") == NamedSource("timm", "resnet18")
    assert NamedSource("timm", "resnet18").text == "timm:resnet18"
    seven = named_source("/work/timm:resnet18?num_classes=7")
    assert seven == NamedSource("timm", "resnet18", 7)
    assert seven is not None and seven.text == "timm:resnet18?num_classes=7"


@pytest.mark.parametrize("source", ["model.py", "timm", "timm:", "keras:resnet50", "timm:a b", "timm:a/b.py"])
def test_other_sources_name_none(source):
    assert named_source(source) is None


def test_a_file_of_that_name_wins(tmp_path):
    (tmp_path / "timm:resnet18").write_text("")
    assert named_source(tmp_path / "timm:resnet18") is None
