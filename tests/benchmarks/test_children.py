"""The processor time of processes whose parent was killed counts, once they are adopted."""

import subprocess
import sys

import pytest

SCRIPT = """
import os, subprocess, sys, time
from tests.benchmarks.children import adopt_orphans, reap_orphans

def taken_s():
    return sum(os.times()[2:4])

if sys.argv[1] == "adopt":
    adopt_orphans()
work = "import time; e = time.process_time() + 0.5\\nwhile time.process_time() < e: pass"
subprocess.run([sys.executable, "-c", f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {work!r}])"])
before, end = taken_s(), time.monotonic() + 5
while taken_s() - before < 0.4 and time.monotonic() < end:
    reap_orphans()
    time.sleep(0.05)
print(taken_s() - before > 0.4)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has subreapers")
@pytest.mark.parametrize(("does", "counts"), [("adopt", "True"), ("not", "False")])
def test_what_an_orphan_computes_counts_if_it_is_adopted(root, does, counts):
    command = [sys.executable, "-c", SCRIPT, does]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == counts
