"""The size of an artifact counts the weight files beside it."""

import pytest

from ace_studio.engine.export.artifact import artifact_bytes


@pytest.mark.parametrize(
    ("name", "beside", "size"), [("m.xml", "m.bin", 15), ("m.onnx", "m.onnx.data", 15), ("m.pt2", "other.bin", 5)]
)
def test_weight_files_of_the_same_stem_count_and_others_do_not(tmp_path, name, beside, size):
    (tmp_path / name).write_bytes(b"12345")
    (tmp_path / beside).write_bytes(b"1234567890")
    assert artifact_bytes(tmp_path / name) == size


def test_a_folder_counts_with_all_that_is_in_it(tmp_path):
    (tmp_path / "p0").mkdir()
    for path in ("pieces.json", "p0/m.onnx"):
        (tmp_path / path).write_bytes(b"123")
    assert artifact_bytes(tmp_path) == 6
