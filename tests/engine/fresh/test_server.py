"""The process that forks: it ends with its orders, and takes in what it has forked."""

import socket
import subprocess
import time
from mmap import PAGESIZE

import psutil
import pytest

from ace_studio.engine.fresh import fresh_python
from ace_studio.engine.fresh.server import mapped_file_pages
from tests.engine.fresh.calling import CALLED, called, on_linux

pytestmark = on_linux


def test_it_ends_when_nobody_can_order_any_more(tmp_path):
    orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    number = theirs.fileno()
    command = fresh_python("ace_studio.engine.fresh.server", "serve", str(number), CALLED, "note")
    with theirs:
        process = subprocess.Popen(command, pass_fds=[number])
    orders.close()
    assert process.wait(20) == 0


def test_what_forked_processes_take_of_the_processor_counts_as_taken_by_it(tmp_path, servers):
    called(tmp_path, "work")
    (server,) = servers._running.values()
    for _ in range(100):  # it takes them in when it hears of their end
        times = psutil.Process(server._process.pid).cpu_times()
        if times.children_user + times.children_system > 0.1:
            return
        time.sleep(0.05)
    pytest.fail(f"they do not count: {times}")


def test_the_pages_are_those_that_the_system_counts():
    pages = mapped_file_pages()
    assert all(address % PAGESIZE == 0 and size % PAGESIZE == 0 for address, size in pages)
    with open("/proc/self/status", encoding="ascii") as status:  # noqa: PTH123
        counted = next(int(line.split()[1]) for line in status if line.startswith("RssFile:")) * 1024
    assert 0.8 * counted < sum(size for _, size in pages) < 1.6 * counted


def test_a_forked_process_is_as_large_as_a_started_one_before_it_grows(tmp_path, servers):
    seen = called(tmp_path, "mapped", module=f"{CALLED}_with_torch")
    assert seen["here"] > 0.95 * seen["before"]
