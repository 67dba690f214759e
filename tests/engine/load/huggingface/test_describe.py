"""A folder is described without building its model."""

from ace_studio.engine.load import inspect_file
from tests.engine.load.samples import load


def test_what_is_in_the_folder_can_be_seen_without_building_it(bert):
    report = inspect_file(bert)
    assert (report.kind, report.trust) == ("huggingface", "data")
    assert "classifier.weight" in {tensor.name for tensor in report.tensors}
    assert [row["input_ids"].shape for row in report.inputs] == [(1, 16), (2, 24)]
    assert {row["attention_mask"].values for row in report.inputs} == {"ones"}
    assert {row["input_ids"].values for row in report.inputs} == {"random 0..59"}  # the vocabulary has 60
    assert "BertForSequenceClassification" in report.notes[0]
    assert [entry.name for entry in report.entries] == ["BertForSequenceClassification"]
    assert inspect_file(bert / "config.json").path == str(bert)  # a file dialog cannot give a folder
    assert report.loads_weights, "the window does not warn of random weights"


def test_the_configuration_opens_its_folder(bert):
    assert load(bert, "config.json").source == bert


def test_a_configuration_that_is_a_link_into_a_cache_opens_the_folder_of_the_link(bert, tmp_path):
    snapshot, stored = tmp_path / "snapshot", tmp_path / "blobs"
    snapshot.mkdir()
    stored.mkdir()
    for number, file in enumerate(sorted(bert.iterdir())):
        (stored / f"{number}").write_bytes(file.read_bytes())
        (snapshot / file.name).symlink_to(stored / f"{number}")
    assert load(snapshot, "config.json").source == snapshot
