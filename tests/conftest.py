"""What every test runs in: no screen, no network chatter, one thread, and user folders that are thrown away.

The environment is set when this file is imported, before any test module can import torch or Qt. torch itself is
not imported here, because the window's tests must be able to prove that nothing imports it.
"""

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from ace_studio.engine.fresh.processes import OF_ONE_PROCESS
from ace_studio.jobs import launch
from ace_studio.jobs.answer import HANDLERS_VARIABLE
from ace_studio.jobs.executors import WorkerExecutor
from ace_studio.records.private_folder import compiled_code_folder
from tests import quiet, seconds
from tests.forked_engines import ForkServer

ROOT = Path(__file__).resolve().parent.parent

ENDS_WITH_TEST = pytest.StashKey[bool]()
"""Whether this process was forked for one test, and ends with it: there is no garbage to collect."""

_user_folders = Path(tempfile.mkdtemp(prefix="ace-tests-"))


def _isolate_user_folders() -> None:
    """Point every folder that platformdirs knows into a temporary one; the real home is never read or written."""
    for name in ("CONFIG", "DATA", "STATE", "CACHE"):
        folder = _user_folders / name.lower()
        folder.mkdir(exist_ok=True)
        os.environ[f"XDG_{name}_HOME"] = str(folder)
    runtime = _user_folders / "runtime"
    runtime.mkdir(mode=0o700, exist_ok=True)
    os.environ["XDG_RUNTIME_DIR"] = str(runtime)


def _isolate_temporary_files() -> None:
    """Temporary files of tests and their processes are thrown away too; what many runs share and pytest's own stay."""
    before = tempfile.gettempdir()
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", before)
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", compiled_code_folder(Path(before)))
    tempfile.tempdir = os.environ["TMPDIR"] = str(_user_folders / "tmp")
    Path(tempfile.tempdir).mkdir()


_isolate_user_folders()
_isolate_temporary_files()
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ["OMP_NUM_THREADS"] = "1"  # torch, OpenMP kernels and the processes that tests start
os.environ["NNCF_CI"] = "1"  # no telemetry
# Some hundred processes are started: without bytecode each spends a quarter of its start on compiling this package.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["ACE_STUDIO_CACHE"] = "off"  # no test may depend on what another one captured
os.environ.pop("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", None)
# pytest changes it for each test; the process that verifies artifacts would be made anew, which takes seconds.
OF_ONE_PROCESS.add("PYTEST_CURRENT_TEST")
quiet.pretend()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what `packaging/ace test` says."""
    parser.addoption("--full", action="store_true", help="also rows that find what other rows of their matrix find")
    parser.addoption("--bar", action="store_true", help="a bar with an estimate of the rest instead of dots")


def pytest_configure(config: pytest.Config) -> None:
    """Count the seconds of each folder."""
    seconds.register(config)


def pytest_unconfigure() -> None:
    """Throw the user folders away."""
    shutil.rmtree(_user_folders, ignore_errors=True)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Collect garbage seldom, and never look at what the imports have made: that took a quarter of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Keep Qt objects away from other threads; skip tests marked ``gpu`` where there is no CUDA device, and say so."""
    if not item.session.stash.get(ENDS_WITH_TEST, False):
        _collect_garbage_in_this_thread(has_window="qapp" in getattr(item, "fixturenames", ()))
    if item.get_closest_marker("gpu") is None:
        return
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device, and torch sees none here")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is marked ``full``, unless ``--full`` asks for it."""
    if not config.option.full:
        left_out = [one for one in items if one.get_closest_marker("full") is not None]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
            items[:] = [one for one in items if one.get_closest_marker("full") is None]


_windows_were_open = False


def _collect_garbage_in_this_thread(*, has_window: bool) -> None:
    """Switch automatic garbage collection off while windows exist: one in another thread would crash the process.

    What a window left behind is frozen afterwards, because it may become garbage while a test has threads. The window
    itself switches the collection on when it is closed, so that the collector does not say whether there was one.
    """
    global _windows_were_open  # noqa: PLW0603 - hooks have no other place that lasts
    if has_window:
        gc.disable()
        gc.unfreeze()
        gc.collect()  # what an earlier window left
    elif _windows_were_open:
        gc.collect()
        gc.freeze()
        gc.enable()
    _windows_were_open = has_window


@pytest.fixture
def fake_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines that are started in this test have the handlers of `tests/jobs/fake_engine.py`, and no torch."""
    monkeypatch.setenv(HANDLERS_VARIABLE, str(ROOT / "tests" / "jobs" / "fake_engine.py"))


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    """The process that engines and commands are forked from."""
    made = ForkServer()
    yield made
    made.close()


@pytest.fixture(scope="module")
def forked_engines(fork_server: ForkServer) -> Iterator[ForkServer]:
    """Engines that are started in this module are forked from the fork server, which takes hundredths of a second."""
    fork_server.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch, "_popen", fork_server.popen)
        yield fork_server


@pytest.fixture(scope="module")
def executor(forked_engines: ForkServer) -> Iterator[WorkerExecutor]:
    """One engine for the tests of a module: what one of them breaks shows in the next."""
    with WorkerExecutor() as made:
        yield made


@pytest.fixture
def one_engine(executor: WorkerExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that are given in this process go to the one engine, where each would start its own."""
    kept = SimpleNamespace(run=executor.run, close=lambda: None)
    monkeypatch.setattr("ace_studio.cli.follow.WorkerExecutor", lambda: kept)


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def digits_folder() -> Path:
    """The folder of the shipped example."""
    return ROOT / "resources" / "examples" / "digits"
