"""Files that ship with the program."""

from ace_studio.records import places
from ace_studio.records.places import example_recipe, resource_folder


def test_the_shipped_example_is_there(root):
    assert resource_folder() == root / "resources"
    assert example_recipe().is_file()


def test_in_an_installed_wheel_the_resources_are_inside_the_package(tmp_path, monkeypatch):
    package = tmp_path / "ace_studio"
    (package / "resources").mkdir(parents=True)
    (package / "records").mkdir()
    monkeypatch.setattr(places, "__file__", str(package / "records" / "places.py"))
    assert resource_folder() == package.resolve() / "resources"
