"""The engine that is kept for the next job is as it was before, or another one, whatever a job did to its process."""

import os
import sys
import textwrap

import pytest

from ace_studio.jobs.executors import WorkerExecutor
from tests.corpus.case import Case, Outcome, run, write

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="descriptors, limits and /proc")

WITNESS = """
import asyncio, functools, locale, logging, os, random, resource, signal, socket, sys, tempfile, threading, warnings
import numpy
from ace_studio.engine.torch_private.process_wide import global_hooks, modes_entered
assert torch.get_default_dtype() is torch.float32 and torch.empty(1).device.type == "cpu"
assert torch.get_num_threads() == 1 and torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
assert not torch.is_autocast_enabled("cpu") and torch.get_float32_matmul_precision() == "highest"
assert not torch.backends.cudnn.benchmark and not any(global_hooks()) and modes_entered() == (0, 0)
assert torch.sigmoid(torch.zeros(1)).item() == 0.5 and torch.relu(torch.full((1,), -1.0)).item() == 0.0
assert torch.nn.functional.gelu(torch.zeros(1)).item() == 0.0 and torch.linalg.norm(torch.ones(4)).item() == 2.0
assert len([1, 2]) == 2 and numpy.geterr()["divide"] == "warn" and "json" in sys.modules
assert not [one for one in torch.serialization.get_safe_globals() if "Planted" in str(one)]
assert "PLANTED" not in os.environ and os.environ["OMP_NUM_THREADS"] == "1"
assert os.umask(0o022) == int(os.environ["WITNESS_UMASK"])
assert signal.getitimer(signal.ITIMER_REAL)[0] == 0 and signal.SIGUSR1 not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
assert signal.getsignal(signal.SIGUSR2) is signal.SIG_DFL and signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN
assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 600 and resource.getrlimit(resource.RLIMIT_FSIZE)[0] == -1
assert os.getpriority(os.PRIO_PROCESS, 0) == int(os.environ["WITNESS_NICE"])
assert not logging.root.manager.disable and socket.getdefaulttimeout() is None
assert [one.name for one in threading.enumerate() if one.name == "left behind"] == []
assert os.fstat(0) and os.fstat(1) and os.fstat(2) and tempfile.gettempdir() != "/planted"
assert locale.setlocale(locale.LC_NUMERIC) == "C" and not any(one[0] == "error" for one in warnings.filters)
print("witness was here", flush=True)
"""
PUT_BACK = {
    "default-dtype": "torch.set_default_dtype(torch.float64)",
    "default-device": "torch.set_default_device('meta')",
    "inference-settings": "torch.set_grad_enabled(False); torch.set_autocast_enabled('cpu', True)",
    "flags": "torch.backends.cudnn.benchmark = True; torch.set_float32_matmul_precision('medium')",
    "hooks-of-all-modules": "torch.nn.modules.module.register_module_forward_hook(lambda *_: torch.zeros(1))",
    "patched-by-own-function": "torch.nn.functional.gelu = lambda x: x + 1",
    "patched-by-a-wrapped-one": """
        import functools
        before = torch.nn.functional.gelu
        torch.nn.functional.gelu = functools.wraps(before)(lambda x: before(x) + 1)""",
    "patched-by-torch's": "torch.sigmoid = torch.relu",
    "patched-by-a-partial": "import functools; torch.relu = functools.partial(torch.add, other=1)",
    "patched-deep-inside": "torch.linalg.norm = lambda *_, **__: torch.zeros(1)",
    "patched-builtin": "import builtins; builtins.len = lambda *_: 0",
    "safe-globals": "class Planted: pass\ntorch.serialization.add_safe_globals([Planted])",
    "numpy": "import numpy; numpy.seterr(all='raise')",
    "environment": "import os; os.environ['PLANTED'] = '1'; os.environ['OMP_NUM_THREADS'] = '7'",
    "environment-by-a-dictionary": "import os; os.environ.update(PLANTED='1'); os.environ.setdefault('PLANTED', '2')",
    "folder-and-umask": "import os; os.chdir('/'); os.umask(0)",
    "alarm": "import signal; signal.signal(signal.SIGALRM, signal.SIG_IGN); signal.setitimer(signal.ITIMER_REAL, 60)",
    "signals": """
        import signal
        signal.signal(signal.SIGUSR2, signal.SIG_IGN)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])""",
    "soft-limits": """
        import resource
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (600, most))
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))""",
    "logging": "import logging, socket; logging.disable(); socket.setdefaulttimeout(0.001)",
    "temporary-files": "import tempfile; tempfile.tempdir = '/planted'",
    "warnings": "import warnings; warnings.simplefilter('error')",
    "stdout-redirected": "import os; os.dup2(os.open('/dev/null', os.O_WRONLY), 1)",
    "streams-closed": "import sys; sys.stdout.close(); sys.stderr = None",
    "modules": "import sys; del sys.modules['json']",
    "thread-that-ends": "import threading, time; threading.Thread(target=time.sleep, args=(0.01,)).start()",
}
SPOILED = {
    "closes-0-to-9": ("import os; os.closerange(0, 10)", "descriptors"),
    "closes-one-of-the-engine": ("import os; os.close(5)", "(5)"),
    "closes-in-the-middle": ("import os; os.closerange(100, 300)", "descriptors"),
    "leaves-files-open": (
        "import os, resource\n"
        "kept = [os.open('/dev/null', 0) for _ in range(resource.getrlimit(resource.RLIMIT_NOFILE)[0] * 6 // 10)]",
        "files open",
    ),
    "thread": (
        """
        import threading, time
        def spin():
            while True: time.sleep(0.01)
        threading.Thread(target=spin, name="left behind", daemon=True).start()""",
        "a thread behind that runs model.py",
    ),
    "mode": (
        """
        from torch.overrides import TorchFunctionMode
        class Doubles(TorchFunctionMode):
            def __torch_function__(self, function, types, args=(), kwargs=None):
                return function(*args, **(kwargs or {}))
        Doubles().__enter__()""",
        "modes of torch",
    ),
    "inference-mode": ("torch.inference_mode().__enter__()", "inference mode"),
    "hard-limit": ("import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (10**9, 10**9))", "limit fsize"),
    "priority": ("import os; os.nice(1)", "priority"),
}
"""What cannot be put back, and what the line in the log says of it."""


@pytest.fixture(scope="module", autouse=True)
def witness_knows():
    with pytest.MonkeyPatch.context() as patch:
        umask = os.umask(0o022)
        os.umask(umask)
        patch.setenv("WITNESS_UMASK", str(umask))
        patch.setenv("WITNESS_NICE", str(os.getpriority(os.PRIO_PROCESS, 0)))
        yield


def _job(name: str, source: str, folder, executor: WorkerExecutor) -> Outcome:
    (folder / name).mkdir()
    case = Case(name=name, source=source)
    write(case, folder / name)
    return run(case, folder / name, executor)


def _attack(code: str) -> str:
    """A model that does it where it is called: after its import, and while a job is busy."""
    body = textwrap.indent(textwrap.dedent(code).strip(), "    ")
    return f"\ndef attack():\n{body}\n\n_plain = inputs\n\ndef inputs():\n    found = _plain()\n    attack()\n    return found\n"


def _pid(executor: WorkerExecutor) -> int | None:
    return executor._client.pid


@pytest.mark.parametrize("name", PUT_BACK)
def test_what_can_be_put_back_is_and_the_engine_stays(name, executor, tmp_path):
    assert _job("before", WITNESS, tmp_path, executor).code == ""
    pid = _pid(executor)
    _job("attack", _attack(PUT_BACK[name]), tmp_path, executor)
    after = _job("after", WITNESS, tmp_path, executor)
    assert (after.code, after.text) == ("", "")
    assert any("witness was here" in line for line in after.log)
    assert _pid(executor) == pid


@pytest.mark.parametrize("name", SPOILED)
def test_what_cannot_be_put_back_starts_another_engine_and_one_line_says_so(name, executor, tmp_path):
    code, words = SPOILED[name]
    assert _job("before", WITNESS, tmp_path, executor).code == ""
    pid = _pid(executor)
    spoiled = _job("attack", _attack(code), tmp_path, executor)
    told = [line for line in spoiled.log if "started anew" in line]
    assert len(told) == 1 and words in told[0]
    after = _job("after", WITNESS, tmp_path, executor)
    assert (after.code, after.text) == ("", "")
    assert _pid(executor) != pid


def test_a_job_that_closed_the_files_of_the_engine_is_told_that_and_nothing_else(executor, tmp_path):
    told = _job("attack", _attack("import os; os.closerange(0, 64)"), tmp_path, executor)
    assert "did not expect" not in told.text and "you can go on" not in told.text
