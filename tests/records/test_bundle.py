import pytest

from ace_studio.records import bundle as bundle_module
from ace_studio.records.bundle import departure_of, unpack
from ace_studio.records.errors import AceError
from ace_studio.records.recipes.recipe import EvaluateChoice, ModelChoice, Recipe

RECIPE = Recipe(model=ModelChoice(source="model.py", weights="../weights/w.pt:state"))


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "project" / "net"
    for name in ("model.py", "parts/block.py", "notes.md", ".git/config", "venv/pyvenv.cfg", "venv/lib.py", "a/b.npy"):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(name)
    (tmp_path / "project" / "weights").mkdir()
    (tmp_path / "project" / "weights" / "w.pt").write_text("weights")
    return made


def bundle_of(recipe, folder, patterns=()):
    return bundle_module.bundle_of(recipe, departure_of(recipe, folder, patterns))


def names(bundle):
    return {file.path for file in bundle.files}


def test_a_bundle_holds_what_the_recipe_names_and_its_folder_without_environments(folder):
    bundle, sources = bundle_of(RECIPE, folder)
    assert names(bundle) == {"net/model.py", "net/parts/block.py", "net/notes.md", "net/a/b.npy", "weights/w.pt"}
    assert bundle.folder == "net"
    assert {one.path.read_text() for one in sources.values()} == {
        path.rpartition("net/")[2] for path in names(bundle)
    } - {"weights/w.pt"} | {"weights"}


def test_a_large_folder_gives_code_and_what_is_named_or_matched(folder, monkeypatch):
    monkeypatch.setattr(bundle_module, "WHOLE_FOLDER_BYTES", 10)
    assert names(bundle_of(RECIPE, folder)[0]) == {"net/model.py", "net/parts/block.py", "weights/w.pt"}
    assert "net/a/b.npy" in names(bundle_of(RECIPE, folder, ["a/*.npy"])[0])
    with pytest.raises(AceError, match="No file matches"):
        bundle_of(RECIPE, folder, ["*.csv"])


def test_the_files_that_an_index_of_weights_names_travel_with_it(folder, monkeypatch):
    monkeypatch.setattr(bundle_module, "WHOLE_FOLDER_BYTES", 10)
    recipe = Recipe(model=ModelChoice(source="model.py", weights="../weights/w.index.json"))
    index = folder.parent / "weights" / "w.index.json"
    index.write_text('{"weight_map": {"a": "w.pt", "b": "gone.pt"}}')
    assert "weights/w.pt" not in names(bundle_of(recipe, folder)[0]), "it cannot be opened anyway"
    index.write_text('{"weight_map": {"a": "w.pt"}}')
    assert {"weights/w.pt", "weights/w.index.json"} <= names(bundle_of(recipe, folder)[0])


def test_more_than_travels_is_an_error(folder, monkeypatch):
    monkeypatch.setattr(bundle_module, "MOST_BYTES", 20)
    with pytest.raises(AceError, match="too many to send"):
        bundle_of(RECIPE, folder)


def test_the_key_follows_the_code_and_the_recipe_but_not_notes(folder):
    key = bundle_of(RECIPE, folder)[0].key
    (folder / "notes.md").write_text("other")
    assert bundle_of(RECIPE, folder)[0].key == key
    (folder / "parts" / "block.py").write_text("other")
    assert bundle_of(RECIPE, folder)[0].key != key
    assert bundle_of(Recipe(model=ModelChoice(source="model.py")), folder)[0].key != key


def test_an_absolute_path_is_named_from_the_recipe_in_the_bundle(folder, tmp_path):
    data = tmp_path / "data" / "labels.npz"
    data.parent.mkdir()
    data.write_text("numbers")
    recipe = Recipe(model=ModelChoice(source="model.py"), evaluate=EvaluateChoice(metric="top-1", data=str(data)))
    bundle, _ = bundle_of(recipe, folder)
    assert "data/labels.npz" in names(bundle)
    assert (bundle.folder, bundle.recipe.evaluate.data) == ("project/net", "../../data/labels.npz")


def test_unpacking_gives_the_same_files_and_needs_each_content_once(folder, tmp_path):
    bundle, sources = bundle_of(RECIPE, folder)
    contents = {digest: one.path.read_bytes() for digest, one in sources.items()}
    first = unpack(bundle, contents, tmp_path / "store", tmp_path / "one")
    second = unpack(bundle, {}, tmp_path / "store", tmp_path / "two")
    for place in (first, second):
        assert (place / "parts" / "block.py").read_text() == "parts/block.py"
        assert (place / "../weights/w.pt").read_text() == "weights"


def test_a_content_that_changed_on_the_way_is_refused(folder, tmp_path):
    bundle, sources = bundle_of(RECIPE, folder)
    with pytest.raises(AceError, match="did not arrive"):
        unpack(bundle, dict.fromkeys(sources, b"evil"), tmp_path / "store", tmp_path / "one")


def test_a_file_that_only_lies_beside_the_code_is_left_out_if_it_changes_meanwhile(folder, tmp_path):
    bundle, sources = bundle_of(RECIPE, folder)
    contents = {digest: one.path.read_bytes() for digest, one in sources.items()}
    (log,) = (file for file in bundle.files if file.path.endswith("a/b.npy"))
    place = unpack(bundle, contents | {log.sha256: b"a line more"}, tmp_path / "store", tmp_path / "one")
    assert (place / "parts" / "block.py").exists() and not (place / "a" / "b.npy").exists()


def test_a_file_that_user_code_wrote_into_the_store_is_written_again(folder, tmp_path):
    bundle, sources = bundle_of(RECIPE, folder)
    contents = {digest: one.path.read_bytes() for digest, one in sources.items()}
    place = unpack(bundle, contents, tmp_path / "store", tmp_path / "one")
    (place / "a" / "b.npy").write_text("written over")
    place = unpack(bundle, contents, tmp_path / "store", tmp_path / "two")
    assert (place / "a" / "b.npy").read_text() == "a/b.npy"


def test_a_path_outside_of_the_bundle_is_refused(folder, tmp_path):
    bundle, _ = bundle_of(RECIPE, folder)
    evil = bundle_module.Bundle(
        recipe=RECIPE, folder=".", key="", files=(bundle_module.BundledFile(path="../x", sha256="0", size=0),)
    )
    with pytest.raises(AceError, match="outside"):
        unpack(evil, {}, tmp_path / "store", tmp_path / "one")
    assert bundle.files
