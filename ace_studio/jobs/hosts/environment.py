"""Sent to a Python on a host: makes an environment of its own there, and installs packages into it.

Standard library only. The first line of stdin behind this program is JSON. What pip says goes to stderr as it comes.
The last line of stdout begins with the mark. An environment that is there is gone on with. When stdin ends, because
somebody cancels or the connection is lost, pip is ended.
"""

import json
import os
import signal
import site
import subprocess
import sys
import threading
import venv

MARK = "ace-studio-environment:"


def main() -> int:
    """Make the environment; returns the exit code of pip."""
    asked = json.loads(sys.stdin.readline())
    home = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")  # noqa: PTH111, PTH118
    folder = os.path.join(home, "ace-studio", "engine-env")  # noqa: PTH118
    # What the Python has stays usable: a torch that was built for this machine's GPU is not fetched again.
    venv.EnvBuilder(with_pip=True, system_site_packages=True, symlinks=True).create(folder)
    python = os.path.join(folder, "bin", "python")  # noqa: PTH118
    if sys.prefix != sys.base_prefix:  # an environment too: the system's packages are not those that it has
        sites = [path for path in site.getsitepackages() if os.path.isdir(path)]  # noqa: PTH112
        inside = os.path.relpath(sites[0], sys.prefix)
        with open(os.path.join(folder, inside, "of-its-python.pth"), "w") as stream:  # noqa: PTH118, PTH123
            stream.write("\n".join(sites) + "\n")
    command = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", *asked["requirements"]]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=2, start_new_session=True)
    threading.Thread(target=end_with_stdin, args=(process,), daemon=True).start()
    code = process.wait()
    if code == 0:
        sys.stdout.write(MARK + json.dumps(python) + "\n")
    return code


def end_with_stdin(process: "subprocess.Popen[bytes]") -> None:
    """Wait for the end of stdin, and end a process with all that it started."""
    while sys.stdin.readline():
        pass
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)


if __name__ == "__main__":
    try:
        ended = main()
    except (OSError, subprocess.CalledProcessError) as error:  # a full disk, or a Python without venv
        sys.stderr.write("%s: %s\n" % (type(error).__name__, error))  # noqa: UP031
        ended = 1
    sys.stdout.flush()
    os._exit(ended)  # the thread that reads stdin does not keep the process
