"""Only code that the user trusts is imported, however its import comes about."""

import hashlib
import io
import py_compile
import shutil
import sys
import sysconfig
import zipimport
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module, machinery, util
from pathlib import Path
from zipfile import ZipFile

import pytest
import torch

from ace_studio.engine.load import inspect_file, load_model
from ace_studio.engine.load.import_gate import GATE, install_gate
from ace_studio.engine.progress import Reporter
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.recipes.recipe import ModelChoice, Recipe
from ace_studio.records.safe_file import file_sha256
from tests.engine.load.samples import NET_SOURCE, Payload, Plain, load, write_net
from tests.other_users import as_root, folder_of_everybody, give_away

SUFFIX = machinery.EXTENSION_SUFFIXES[0]
EVIL = "import os\nos.mkdir({mark!r})\nVALUE = 1\n"
HOOKS = (
    (machinery.SourceFileLoader, "get_code"),
    (machinery.SourcelessFileLoader, "get_code"),
    (machinery.ExtensionFileLoader, "create_module"),
    (zipimport, "_get_module_code"),
    (io, "open_code"),
)


@pytest.fixture(autouse=True)
def gate():
    """The gate as in a process of the engine; afterwards the import system is Python's own again."""
    before = [getattr(place, name) for place, name in HOOKS]
    meta_path, entries = list(sys.meta_path), list(sys.path)
    install_gate()
    yield
    for (place, name), plain in zip(HOOKS, before, strict=True):
        setattr(place, name, plain)
    sys.meta_path[:], sys.path[:] = meta_path, entries
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


@dataclass(frozen=True)
class Way:
    """One of Python's ways of importing, as trusted code uses it."""

    code: str
    """In ``net.py``."""
    asked: str
    """Name of the file that must be asked for."""
    lay: Callable[[Path], None] = lambda source: None
    """Lays the attack out, given ``helper.py`` with a canary."""


def in_zip(name: str = "helper.py", *, is_bytecode: bool = False) -> Callable[[Path], None]:
    def lay(source: Path) -> None:
        if is_bytecode:
            source = Path(py_compile.compile(str(source), cfile=str(source.with_suffix(".pyc"))))
        with ZipFile(source.with_name("libs.zip"), "w") as archive:
            archive.write(source, name)
        for one in source.parent.glob("helper.*"):
            one.unlink()

    return lay


def moved_to(name: str) -> Callable[[Path], None]:
    def lay(source: Path) -> None:
        place = source.parent / name
        place.parent.mkdir(parents=True, exist_ok=True)
        source.rename(place)

    return lay


def beside_harmless(source: Path) -> None:
    source.with_name("harmless.py").write_text("A = 1")


def as_bytecode(source: Path) -> None:
    py_compile.compile(str(source), cfile=str(source.with_suffix(".pyc")))
    source.unlink()


def as_entry_point(source: Path) -> None:
    moved_to("plugins/helper.py")(source)
    about = source.parent / "plugins" / "evil-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[any.group]\nevil = helper:VALUE\n")


def as_path_file(source: Path) -> None:
    (source.parent / "sub").mkdir()
    statement = source.read_text().replace("\n", "; ")
    (source.parent / "sub" / "a.pth").write_text(f"{statement}\n")


def into_package(source: Path) -> None:
    moved_to("other/helper.py")(source)
    (source.parent / "pack").mkdir()
    (source.parent / "pack" / "__init__.py").write_text("A = 1\n")


FINDER = """
import importlib.util, sys
class Finder:
    @staticmethod
    def find_spec(name, path, target=None):
        return importlib.util.spec_from_file_location(name, "hidden/helper.py") if name == "from_nowhere" else None
sys.meta_path.insert(0, Finder)
import from_nowhere
"""
LAZY = """
import importlib.util, sys
loader = importlib.util.LazyLoader(importlib.machinery.SourceFileLoader("lazy_one", "helper.py"))
lazy = importlib.util.module_from_spec(importlib.util.spec_from_file_location("lazy_one", "helper.py", loader=loader))
loader.exec_module(lazy)
lazy.VALUE
"""
ENTRY_POINT = """
import sys
sys.path.append("plugins")
from importlib.metadata import entry_points
[one.load() for one in entry_points(group="any.group")]
"""
IN_A_THREAD = """
import threading
thread = threading.Thread(target=lambda: __import__("hel" + "per"))
thread.start()
thread.join()
"""
RELOAD = """
import importlib, harmless, shutil
shutil.copy("helper.py", "harmless.py")
importlib.reload(harmless)
"""
IN_ANOTHER_FOLDER = "import sys\nsys.path.append('sub')\n"
FROM_ZIP = "import sys\nsys.path.insert(0, 'libs.zip')\n"
OF_MACHINERY = "import importlib.machinery\nimportlib.machinery"
WAYS = {
    "a zip on sys.path": Way(f"{FROM_ZIP}import helper", "libs.zip", in_zip()),
    "a package in a zip": Way(f"{FROM_ZIP}import helper", "libs.zip", in_zip("helper/__init__.py")),
    "a folder in a zip": Way(
        "import sys\nsys.path.append('libs.zip/sub')\nimport helper", "libs.zip", in_zip("sub/helper.py")
    ),
    "bytecode in a zip": Way(f"{FROM_ZIP}import helper", "libs.zip", in_zip("helper.pyc", is_bytecode=True)),
    "a zip importer": Way(
        "import zipimport\nzipimport.zipimporter('libs.zip').load_module('helper')", "libs.zip", in_zip()
    ),
    "a source loader": Way(
        f"{OF_MACHINERY}.SourceFileLoader('any', 'a.txt').load_module()", "a.txt", moved_to("a.txt")
    ),
    "a bytecode loader": Way(
        f"{OF_MACHINERY}.SourcelessFileLoader('any', 'helper.pyc').load_module()", "helper.pyc", as_bytecode
    ),
    "bytecode on sys.path": Way("__import__('helper')", "helper.pyc", as_bytecode),
    "a namespace package": Way(
        "import importlib\nimportlib.import_module('space.deep.helper')", "helper.py", moved_to("space/deep/helper.py")
    ),
    "a path of a package": Way(
        "import pack\npack.__path__.append('other')\nimport pack.helper", "helper.py", into_package
    ),
    "a finder on sys.meta_path": Way(FINDER, "helper.py", moved_to("hidden/helper.py")),
    "a lazy loader": Way(LAZY, "helper.py"),
    "an entry point": Way(ENTRY_POINT, "helper.py", as_entry_point),
    "a .pth file": Way("import site\nsite.addsitedir('sub')", "a.pth", as_path_file),
    "a thread": Way(IN_A_THREAD, "helper.py"),
    "a module that is loaded again": Way(RELOAD, "harmless.py", beside_harmless),
    "a pickle": Way("import pickle\npickle.loads(b'chelper\\nVALUE\\n.')", "helper.py"),
    "pydoc": Way("import pydoc\npydoc.importfile('helper.py')", "helper.py"),
    "runpy, a module": Way("import runpy\nrunpy.run_module('helper')", "helper.py"),
    "runpy, a script": Way("import runpy\nrunpy.run_path('sub/any')", "any", moved_to("sub/any")),
    "runpy, bytecode": Way("import runpy\nrunpy.run_path('helper.pyc')", "helper.pyc", as_bytecode),
    "runpy, a folder": Way("import runpy\nrunpy.run_path('sub')", "__main__.py", moved_to("sub/__main__.py")),
    "runpy, a zip": Way("import runpy\nrunpy.run_path('libs.zip')", "libs.zip", in_zip("__main__.py")),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Iterator[Path]:
    """The current folder, with ``helper.py``; modules of its names are gone before and after."""
    names = ("helper", "harmless", "pack", "space", "from_nowhere", "lazy_one", "any")

    def forget() -> None:
        for name in [one for one in sys.modules if one.partition(".")[0] in names]:
            del sys.modules[name]
        sys.path_importer_cache.clear()
        zipimport._zip_directory_cache.clear()

    monkeypatch.chdir(tmp_path)
    forget()
    yield tmp_path
    forget()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_no_way_of_importing_runs_what_is_not_trusted(folder, mark, way):
    source = write_evil(folder / "helper.py", mark)
    way.lay(source)
    net = write_net(folder, source=f"{way.code}\n{NET_SOURCE}")
    trusted = sha256_of(net, *folder.glob("pack/__init__.py"), *folder.glob("harmless.py"))
    assert refused(folder, "net.py", trusted=trusted) == [way.asked]
    assert not mark.exists()
    for one in folder.glob("harmless.py"):
        one.write_text("A = 1")
    sys.modules.pop("harmless", None)
    load(folder, "net.py", trusted=True)
    assert mark.exists(), "else the payload proves nothing"


def test_an_archive_that_is_replaced_after_its_hash_was_taken_is_used_as_it_was(folder, mark):
    harmless = folder / "harmless.py"
    harmless.write_text("VALUE = 2\n")
    with ZipFile(folder / "libs.zip", "w") as archive:
        archive.write(harmless, "first.py")
        archive.write(harmless, "helper.py")
    known = file_sha256(folder / "libs.zip")
    net = write_net(folder, source=f"{FROM_ZIP}import first, helper\n{NET_SOURCE}")
    trusted = sha256_of(net)

    def swap(sha256: str) -> bool:
        if sha256 == known:
            in_zip()(write_evil(folder / "helper.py", mark))
        return sha256 == known or sha256 in trusted

    load_model(Recipe(model=ModelChoice(source="net.py")), folder, is_trusted=swap, reporter=Reporter())
    assert sys.modules["helper"].VALUE == 2
    assert not mark.exists()


def test_compiled_modules_from_anywhere_are_asked_for_but_not_those_of_torchs_compilers(folder, monkeypatch):
    library = next(Path(sysconfig.get_config_var("DESTSHARED")).glob("_lsprof.*"), None)
    if library is None:
        pytest.skip("this Python has its modules built in")
    monkeypatch.delitem(sys.modules, "_lsprof", raising=False)
    apart = folder / "theirs" / library.name
    apart.parent.mkdir()
    shutil.copy(library, apart)
    (folder / "mine").mkdir()
    source = f"import sys\nsys.path.insert(0, {str(apart.parent)!r})\n__import__('_ls' + 'prof')\n{NET_SOURCE}"
    net = write_net(folder / "mine", source=source)
    assert refused(folder / "mine", "net.py", trusted=sha256_of(net)) == [apart.name]
    assert "_lsprof" not in sys.modules
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(apart.parent))
    load(folder / "mine", "net.py", trusted=sha256_of(net))
    assert Path(sys.modules.pop("_lsprof").__file__) == apart


@pytest.mark.parametrize("place", ["bin", "share"])
def test_only_the_libraries_of_the_engines_python_run_unasked_not_all_that_lies_below_it(place, monkeypatch):
    monkeypatch.setattr(sys, "path", [])
    GATE.environment = ()
    install_gate()
    GATE.begin(lambda _: False)
    assert not GATE.is_gated(str(Path(sysconfig.get_path("purelib"), "any.py")))
    assert GATE.is_gated(str(Path(sysconfig.get_path("data"), place, "any.py")))


def test_a_data_file_of_a_trusted_package_needs_no_trust(folder):
    (folder / "pack").mkdir()
    (folder / "pack" / "__init__.py").write_text("import pkgutil\nSIZES = pkgutil.get_data(__name__, 'sizes.txt')\n")
    (folder / "pack" / "sizes.txt").write_text("3")
    net = write_net(folder, source=f"import pack\n{NET_SOURCE}")
    load(folder, "net.py", trusted=sha256_of(net, folder / "pack" / "__init__.py"))
    assert sys.modules["pack"].SIZES == b"3"


def test_what_trusted_code_reads_and_executes_itself_is_its_own_business(folder, mark):
    write_evil(folder / "helper.py", mark)
    net = write_net(folder, source=f"from pathlib import Path\nexec(Path('helper.py').read_text())\n{NET_SOURCE}")
    load(folder, "net.py", trusted=sha256_of(net))
    assert mark.exists()


def test_a_link_to_a_library_that_is_swapped_before_it_is_read_runs_nothing(folder, mark, monkeypatch):
    """It leads to the standard library when the gate looks where it lies, and to a canary when the loader reads it."""
    evil = write_evil(folder / "evil", mark)
    link = folder / "helper.py"
    link.symlink_to(Path(sysconfig.get_path("stdlib"), "colorsys.py"))
    net = write_net(folder, source=f"__import__('helper')\n{NET_SOURCE}")
    plain, seen = GATE.is_gated, []

    def swap(file: str) -> bool:
        answer = plain(file)
        if Path(file).name == "helper.py":
            link.unlink()
            link.symlink_to(evil)
            seen.append(file)
        return answer

    monkeypatch.setattr(GATE, "is_gated", swap)
    assert refused(folder, "net.py", trusted=sha256_of(net)) == ["evil"]
    assert seen
    assert not mark.exists()


def _compiled_twice(folder: Path) -> tuple[Path, bytes]:
    """A compiled module of the standard library as a user's own, and the content of another one."""
    one, other = (Path(sysconfig.get_path("stdlib"), "lib-dynload", name + SUFFIX) for name in ("_bisect", "_heapq"))
    if not one.is_file() or not other.is_file():
        pytest.skip("this Python has these modules built in")
    place = folder / one.name
    place.write_bytes(one.read_bytes())
    return place, other.read_bytes()


def test_a_compiled_module_that_is_swapped_after_it_was_hashed_does_not_run(tmp_path, monkeypatch):
    place, swapped = _compiled_twice(tmp_path)
    GATE.begin({hashlib.sha256(place.read_bytes()).hexdigest()}.__contains__)
    GATE.add_folder(tmp_path)
    real = GATE.check

    def check_and_swap(file, content):
        real(file, content)
        place.write_bytes(swapped)

    monkeypatch.setattr(GATE, "check", check_and_swap)
    spec = util.spec_from_file_location("_bisect", place)
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.bisect_right([1, 2], 1) == 1 and module.__file__ == str(place)
    assert place.read_bytes() == swapped


@as_root
def test_the_copy_of_a_compiled_module_is_never_taken_from_a_folder_of_another_user(tmp_path, monkeypatch):
    place, swapped = _compiled_twice(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(folder_of_everybody(tmp_path / "tmp")))
    sha256 = hashlib.sha256(place.read_bytes()).hexdigest()
    prepared = tmp_path / "tmp" / "ace-modules" / sha256
    prepared.mkdir(parents=True)
    (prepared / place.name).write_bytes(swapped)
    for folder in (prepared, prepared.parent):
        give_away(folder)
    GATE.begin({sha256}.__contains__)
    GATE.add_folder(tmp_path)
    with pytest.raises(PermissionError, match="another user"):
        util.module_from_spec(util.spec_from_file_location("_bisect", place))
