"""Pages of files are mapped again in a forked process, so that its memory grows as that of a started one."""

from mmap import PAGESIZE

from ace_studio.engine.fresh.mapped import mapped_file_pages
from tests.engine.fresh.calling import CALLED, called, on_linux

pytestmark = on_linux


def test_the_pages_are_those_that_the_system_counts():
    pages = mapped_file_pages()
    assert all(address % PAGESIZE == 0 and size % PAGESIZE == 0 for address, size in pages)
    with open("/proc/self/status", encoding="ascii") as status:  # noqa: PTH123
        counted = next(int(line.split()[1]) for line in status if line.startswith("RssFile:")) * 1024
    assert 0.8 * counted < sum(size for _, size in pages) < 1.6 * counted


def test_a_forked_process_is_as_large_as_a_started_one_before_it_grows(tmp_path, servers):
    seen = called(tmp_path, "mapped", module=f"{CALLED}_with_torch")
    assert seen["here"] > 0.95 * seen["before"]
