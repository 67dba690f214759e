"""The first code of a worker process, started by path: ``python /path/to/boot.py [MODULE]`` in any interpreter.

The interpreter need not have ACE Studio installed. It imports this package alone, from the folder that this file lies
in: putting the parent folder on ``sys.path`` would give the packages of the window's environment to the user's
interpreter. The address to connect to comes in one environment variable, which is removed before other code can read
it. Standard library only until `become_worker` calls the worker. With a module, the process runs that module instead.
"""

import importlib
import importlib.util
import json
import os
import sys
import traceback

CONFIG_VARIABLE = "ACE_STUDIO_WORKER"
OLDEST_PYTHON = (3, 11)
_TOO_OLD = "ACE Studio needs Python 3.11 or newer; this is %s\n" % sys.version.split()[0]  # noqa: UP031
_FOLDER = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - works in any Python, however old


def become_worker() -> int:
    """Make ``ace_studio`` importable, arrange to die with the parent, and become the worker."""
    if sys.version_info < OLDEST_PYTHON:
        sys.stderr.write(_TOO_OLD)
        return 3
    config = json.loads(os.environ.pop(CONFIG_VARIABLE))
    _make_importable()
    importlib.import_module("ace_studio.jobs.guard").die_with_parent(config)
    if config.get("contained_to") is not None:
        containment = importlib.import_module("ace_studio.records.containment")  # before the engine starts any thread
        refused = containment.contain(config["contained_to"])
        sys.stderr.write("Contained: %s; writes only below %s\n" % (refused, ", ".join(config["contained_to"])))  # noqa: UP031
    # By name, so that this file depends on nothing: the worker pulls in the whole engine.
    importlib.import_module("ace_studio.jobs.worker").run_worker(config)
    return 0


def run_module(name: str) -> None:
    """Call ``main()`` of a module of this package."""
    if sys.version_info < OLDEST_PYTHON:
        sys.exit(_TOO_OLD)
    _make_importable()
    importlib.import_module(name).main()


def _make_importable() -> None:
    """Import ``ace_studio`` from its folder, and take our own folder, full of common names, off the path."""
    package = os.path.dirname(_FOLDER)  # noqa: PTH120
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _FOLDER]  # noqa: PTH100
    spec = importlib.util.spec_from_file_location(
        "ace_studio",
        os.path.join(package, "__init__.py"),  # noqa: PTH118
        submodule_search_locations=[package],
    )
    if spec is None or spec.loader is None:
        raise ImportError("no package in " + package)
    module = importlib.util.module_from_spec(spec)
    sys.modules["ace_studio"] = module
    spec.loader.exec_module(module)


def run_and_exit() -> None:
    """End the process with the code of `become_worker`."""
    try:
        code = become_worker()
    except OSError as error:  # the machine refused; the parent's message is made of this line
        sys.stderr.write("%s: %s\n" % (type(error).__name__, error))  # noqa: UP031
        code = 1
    except ModuleNotFoundError as error:
        # The parent says which package is missing and how to get it; of a package that is broken it shows all.
        if error.name and "." not in error.name:
            sys.stderr.write("ModuleNotFoundError: %s\n" % error)  # noqa: UP031
        else:
            traceback.print_exc()
        code = 1
    except BaseException:  # noqa: BLE001 - border: the parent reads the traceback, and tearing torch down takes long
        traceback.print_exc()
        code = 1
    os._exit(code)


if __name__ == "__mp_main__":  # in a process that was spawned by one of these, as Dask does; its task is ours
    _make_importable()
elif __name__ == "__main__" and sys.argv[1:]:
    run_module(sys.argv[1])
elif __name__ == "__main__":
    run_and_exit()
