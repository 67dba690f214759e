"""Attacks on the process that the next job runs in, for `test_process_state`: each is code of a model."""

import json
import os
import sys
import textwrap
import time
from pathlib import Path
from types import ModuleType

HEAD = "import torch\nfrom torch import nn\n"
WITNESS = """
import asyncio, functools, locale, logging, os, random, resource, signal, socket, sys, tempfile, threading, warnings
import numpy
from ace_studio.engine.torch_private.process_wide import global_hooks, modes_entered
assert torch.get_default_dtype() is torch.float32 and torch.empty(1).device.type == "cpu"
assert torch.get_num_threads() == threads and torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
assert not torch.is_autocast_enabled("cpu") and torch.get_float32_matmul_precision() == "highest"
assert not torch.backends.cudnn.benchmark and not any(global_hooks()) and modes_entered() == (0, 0)
assert torch.sigmoid(torch.zeros(1)).item() == 0.5 and torch.relu(torch.full((1,), -1.0)).item() == 0.0
assert torch.nn.functional.gelu(torch.zeros(1)).item() == 0.0 and torch.linalg.norm(torch.ones(4)).item() == 2.0
assert torch.ones(4).sum().item() == 4.0 and torch.nn.ReLU()(torch.full((1,), -2.0)).item() == 0.0
assert not hasattr(torch.nn.Linear, "planted") and not hasattr(torch.nn, "Planted")
assert len([1, 2]) == 2 and numpy.geterr()["divide"] == "warn" and "json" in sys.modules
assert not [one for one in torch.serialization.get_safe_globals() if "Planted" in str(one)]
assert "PLANTED" not in os.environ and os.environ["OMP_NUM_THREADS"] == "1"
assert os.umask(umask) == umask
assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
assert signal.SIGUSR1 not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
assert signal.getsignal(signal.SIGUSR2) is signal.SIG_DFL and signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN
assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 600 and resource.getrlimit(resource.RLIMIT_FSIZE)[0] == -1
assert os.getpriority(os.PRIO_PROCESS, 0) == priority
assert not logging.root.manager.disable and socket.getdefaulttimeout() is None
assert [one.name for one in threading.enumerate() if one.name == "left behind"] == []
assert tempfile.gettempdir() != "/planted"
assert locale.setlocale(locale.LC_NUMERIC) == "C" and not any(one[0] == "error" for one in warnings.filters)
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
    "method-hidden-by-own-function": "torch.Tensor.sum = lambda self, *_: self * 0",
    "method-hidden-by-torch's": "torch.Tensor.sum = torch.nn.Module.extra_repr",
    "special-method-hidden": "torch.nn.ReLU.__call__ = lambda self, x: -x",
    "added": """
        torch.nn.Linear.planted = lambda self: 1
        class Planted: pass
        torch.nn.Planted = Planted""",
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
    "streams-closed": "import sys; sys.stdout.close(); sys.stderr = None",
    "modules": "import sys; del sys.modules['json']",
    "thread-that-ends": "import threading, time; threading.Thread(target=time.sleep, args=(0.01,)).start()",
}
SPOILED = {
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
    "inference-mode": ("global kept; kept = torch.inference_mode(); kept.__enter__()", "inference mode"),
    "hard-limit": (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (10**9, 10**9))",
        "limits of the system",
    ),
}
"""What cannot be put back, and what is said of it."""
if hasattr(os, "geteuid") and os.geteuid() != 0:  # root may take it back
    SPOILED["priority"] = ("import os; os.nice(1)", "priority")
else:
    PUT_BACK["priority"] = "import os; os.nice(1)"


def attack(code: str) -> int:
    """Run the code as a model's, in a process of its own; print what was left, and what a witness finds then."""
    import torch

    from ace_studio.engine.load.user_code import MARK
    from ace_studio.engine.pipeline.process_state import ProcessState

    umask = os.umask(0o022)
    os.umask(umask)
    known = {"umask": umask, "priority": os.getpriority(os.PRIO_PROCESS, 0), "threads": torch.get_num_threads()}
    folder = Path.cwd()
    ProcessState().put_back()
    model = ModuleType("model")
    setattr(model, MARK, True)
    sys.modules["model"] = model
    state = ProcessState()
    source = HEAD + "def attack():\n" + textwrap.indent(textwrap.dedent(code).strip(), "    ") + "\nattack()\n"
    exec(compile(source, "/home/somebody/model.py", "exec"), vars(model))
    started = time.perf_counter()
    left = state.put_back()
    took_ms = (time.perf_counter() - started) * 1000
    found = "" if Path.cwd() == folder else "another folder"
    try:
        exec(compile(HEAD + WITNESS, "/home/somebody/witness.py", "exec"), known)
    except BaseException as error:  # noqa: BLE001 - told to the test
        line = error.__traceback__.tb_next.tb_lineno if error.__traceback__ and error.__traceback__.tb_next else 0
        found = f"{error!r} {(HEAD + WITNESS).splitlines()[line - 1] if line else ''}"
    answer = json.dumps({"left": left, "found": found, "took_ms": took_ms})
    os.write(int(os.environ["ANSWER"]), answer.encode())
    os._exit(0)
