"""Only code that the user trusts is imported, however its import comes about."""

import py_compile
import sys
from importlib import import_module, machinery
from pathlib import Path

import pytest
import torch

from ace_studio.engine.load import inspect_file, load_model
from ace_studio.engine.load.import_gate import GATE, install_gate
from ace_studio.engine.progress import Reporter
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.recipe import ModelChoice, Recipe
from tests.engine.load.samples import NET_SOURCE, Payload, Plain, load, write_net

EVIL = "import os\nos.mkdir({mark!r})\nVALUE = 1\n"
LOADERS = {
    machinery.SourceFileLoader: "get_code",
    machinery.SourcelessFileLoader: "get_code",
    machinery.ExtensionFileLoader: "create_module",
}


@pytest.fixture(autouse=True)
def gate():
    """The gate as in a process of the engine; afterwards the import system is Python's own again."""
    before = {kind: getattr(kind, name) for kind, name in LOADERS.items()}
    install_gate()
    yield
    for kind, name in LOADERS.items():
        setattr(kind, name, before[kind])
    GATE.__init__()


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    return tmp_path / "mark"


def write_evil(path: Path, mark: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(EVIL.format(mark=str(mark)))
    return path


def sha256_of(*files: Path) -> set[str]:
    return {inspect_file(file).sha256 for file in files}


def refused(folder: Path, source: str, **options) -> list[str]:
    """Names of the files that loading asked trust for."""
    with pytest.raises(AceError) as caught:
        load(folder, source, **options)
    assert {problem.code for problem in caught.value.problems} == {ErrorCode.UNTRUSTED}
    return [Path(problem.where).name for problem in caught.value.problems]


def test_all_files_that_the_code_imports_are_asked_for_before_any_runs(tmp_path, mark):
    net = write_net(tmp_path, source=f"import parts.block\nfrom helper import *\n{NET_SOURCE}")
    write_evil(tmp_path / "helper.py", mark).write_text("from parts import deep\n" + EVIL.format(mark=str(mark)))
    write_evil(tmp_path / "parts" / "block.py", mark)
    write_evil(tmp_path / "parts" / "deep.py", mark)
    (tmp_path / "parts" / "__init__.py").write_text("")
    write_evil(tmp_path / "unused.py", mark)
    assert sorted(refused(tmp_path, "net.py", trusted=False)) == ["block.py", "deep.py", "helper.py", "net.py"]
    assert sorted(refused(tmp_path, "net.py", trusted=sha256_of(net))) == ["block.py", "deep.py", "helper.py"]
    assert not mark.exists()


def test_relative_imports_of_a_package_are_found(tmp_path, mark):
    (tmp_path / "pack").mkdir()
    net = write_net(tmp_path / "pack", source=f"from .layers import VALUE\nfrom . import other\n{NET_SOURCE}")
    (tmp_path / "pack" / "__init__.py").write_text("from pack import started\n")
    for name in ("layers", "other", "started"):
        write_evil(tmp_path / "pack" / f"{name}.py", mark)
    asked = refused(tmp_path / "pack", "net.py", trusted=sha256_of(net))
    assert set(asked) >= {"layers.py", "other.py"}
    assert not mark.exists()


BY_PATH = """
import importlib.util
spec = importlib.util.spec_from_file_location("any_name", __file__.replace("net", "helper"))
spec.loader.exec_module(importlib.util.module_from_spec(spec))
"""
COMPUTED = {
    "importlib": "import importlib\nimportlib.import_module('hel' + 'per')",
    "hidden exception": "try:\n    __import__('hel' + 'per')\nexcept Exception:\n    pass",
    "by path": BY_PATH,
    "another folder": "import sys\nsys.path.append('sub')\nimport inner",
}


@pytest.mark.parametrize("computed", COMPUTED.values(), ids=COMPUTED)
def test_an_import_that_no_statement_names_stops_the_load_with_a_question(tmp_path, mark, computed, monkeypatch):
    monkeypatch.chdir(tmp_path)
    net = write_net(tmp_path, source=f"{computed}\n{NET_SOURCE}")
    others = [write_evil(tmp_path / name, mark) for name in ("helper.py", "sub/inner.py")]
    assert refused(tmp_path, "net.py", trusted=sha256_of(net)) in (["helper.py"], ["inner.py"])
    assert not mark.exists()
    load(tmp_path, "net.py", trusted=sha256_of(net, *others))
    assert mark.exists(), "else the payload proves nothing"


def test_a_trusted_file_that_changed_is_asked_for_again(tmp_path, mark):
    net = write_net(tmp_path, source=f"import helper\n{NET_SOURCE}")
    helper = tmp_path / "helper.py"
    helper.write_text("VALUE = 1\n")
    trusted = sha256_of(net, helper)
    assert load(tmp_path, "net.py", trusted=trusted).code == {
        str(file): inspect_file(file).sha256 for file in (net, helper)
    }
    write_evil(helper, mark)
    assert refused(tmp_path, "net.py", trusted=trusted) == ["helper.py"]


def test_cached_bytecode_beside_trusted_source_does_not_run(tmp_path, mark):
    """A .pyc that claims to belong to the source runs in plain Python."""
    net = write_net(tmp_path, source=f"import helper\n{NET_SOURCE}")
    helper = write_evil(tmp_path / "helper.py", mark)
    py_compile.compile(str(helper), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    helper.write_text("VALUE = 2\n")
    load(tmp_path, "net.py", trusted=sha256_of(net, helper))
    assert sys.modules["helper"].VALUE == 2
    assert not mark.exists()


def test_bytecode_without_source_needs_trust_of_its_own(tmp_path, mark):
    net = write_net(tmp_path, source=f"import helper\n{NET_SOURCE}")
    helper = write_evil(tmp_path / "helper.py", mark)
    py_compile.compile(str(helper), cfile=str(tmp_path / "helper.pyc"))
    helper.unlink()
    assert refused(tmp_path, "net.py", trusted=sha256_of(net)) == ["helper.pyc"]
    assert not mark.exists()
    load(tmp_path, "net.py", trusted=True)
    assert mark.exists()


@pytest.mark.parametrize("cache", ["", "cache"])
def test_a_compiled_module_beside_the_model_is_asked_for_and_one_in_a_compilers_cache_below_it_is_not(
    tmp_path, monkeypatch, cache
):
    """A model may lie in the folder of temporary files, where torch keeps what it compiles."""
    library = Path(import_module("markupsafe._speedups").__file__)
    built = tmp_path / "cache" / library.name
    built.parent.mkdir()
    built.write_bytes(library.read_bytes())
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / cache if cache else tmp_path.parent / "other"))
    find = f"spec = importlib.util.spec_from_file_location('_speedups', {str(built)!r})"
    code = f"import importlib.util\n{find}\nimportlib.util.module_from_spec(spec)\n"
    net = write_net(tmp_path, source=code + NET_SOURCE)
    if cache:
        load(tmp_path, "net.py", trusted=sha256_of(net))
    else:
        assert refused(tmp_path, "net.py", trusted=sha256_of(net)) == [library.name]


def test_a_folder_that_is_only_named_like_one_of_packages_is_no_part_of_the_environment(tmp_path, mark):
    source = f"import sys\nsys.path.insert(0, {str(tmp_path / 'site-packages')!r})\nimport late\n{NET_SOURCE}"
    net = write_net(tmp_path, source=source)
    write_evil(tmp_path / "site-packages" / "late.py", mark)
    assert refused(tmp_path, "net.py", trusted=sha256_of(net)) == ["late.py"]
    assert not mark.exists()


def test_libraries_are_imported_without_a_question(tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    net = write_net(tmp_path, source=f"import colorsys\n{NET_SOURCE}")
    assert load(tmp_path, "net.py", trusted=sha256_of(net)).code == {str(net): inspect_file(net).sha256}


def test_the_classes_of_a_pickle_are_asked_for_with_it(tmp_path, mark):
    write_evil(tmp_path / "shapes_of_mine.py", mark).write_text(
        "import torch\nfrom helper_of_mine import VALUE\nclass Net(torch.nn.Linear): pass\n"
    )
    (tmp_path / "helper_of_mine.py").write_text("VALUE = 1\n")
    sys.path.insert(0, str(tmp_path))
    try:
        torch.save(import_module("shapes_of_mine").Net(4, 3), tmp_path / "whole.pt")
    finally:
        sys.path.remove(str(tmp_path))
        for name in ("shapes_of_mine", "helper_of_mine"):
            del sys.modules[name]
    asked = refused(tmp_path, "whole.pt", trusted=False)
    assert asked == ["whole.pt", "shapes_of_mine.py", "helper_of_mine.py"]


def test_a_pickle_that_is_replaced_after_its_hash_was_taken_is_opened_as_it_was(tmp_path, mark):
    torch.save(Plain(), tmp_path / "a.pt")

    def swap(sha256: str) -> bool:
        torch.save(Payload(mark), tmp_path / "a.pt")
        return True

    loaded = load_model(Recipe(model=ModelChoice(source="a.pt")), tmp_path, is_trusted=swap, reporter=Reporter())
    assert type(loaded.module).__name__ == "Plain"
    assert not mark.exists()


def test_code_outside_of_the_models_folder_and_of_the_environment_is_asked_for_too(tmp_path, mark):
    (tmp_path / "mine").mkdir()
    source = f"import sys\nsys.path.append({str(tmp_path / 'theirs')!r})\nimport apart\n{NET_SOURCE}"
    net = write_net(tmp_path / "mine", source=source)
    write_evil(tmp_path / "theirs" / "apart.py", mark)
    try:
        assert refused(tmp_path / "mine", "net.py", trusted=sha256_of(net)) == ["apart.py"]
    finally:
        sys.path[:] = [one for one in sys.path if one != str(tmp_path / "theirs")]
    assert not mark.exists()
