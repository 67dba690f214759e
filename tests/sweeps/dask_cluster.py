"""A Dask scheduler and its workers, each in a process of its own."""

import socket
import subprocess
import sys
import time
from contextlib import suppress


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class Cluster:
    """A scheduler and two workers in processes of their own."""

    def __init__(self, folder, protocol="tcp", *options):
        self.folder, self.port, self.processes, self.options = folder, free_port(), [], options
        self.address = f"{protocol}://127.0.0.1:{self.port}"
        self.start_scheduler()
        for name in ("one", "two"):
            self.start_worker(name)

    def start(self, *words):
        command = [sys.executable, "-m", "distributed.cli." + words[0], *words[1:], *self.options]
        self.processes.append(subprocess.Popen(command, cwd=self.folder, stderr=subprocess.DEVNULL))

    def start_scheduler(self):
        self.start("dask_scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard")
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                break
            time.sleep(0.1)

    def start_worker(self, name):
        self.start("dask_worker", self.address, "--nthreads", "1", "--name", name, "--no-dashboard", "--no-nanny")

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()
