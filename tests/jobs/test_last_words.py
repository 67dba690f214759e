"""The line that ends a process with os._exit or os.kill is printed; a forked child ends as before."""

import subprocess
import sys

import pytest

from ace_studio.jobs.last_words import HEADLINE

CHILD = """
import os, signal
from ace_studio.jobs.last_words import tell_last_words
tell_last_words()
{code}
"""


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("os._exit(7)", "os._exit(7)"),
        ("os.kill(os.getpid(), signal.SIGTERM)", "os.kill("),
        ("os.kill(os.getpid(), 0)", ""),
        ("os.fork() == 0 and os._exit(3)", ""),
    ],
)
def test_what_ends_the_process_says_so_with_its_stack(code, words):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CHILD.format(code=code)], capture_output=True, text=True, check=False
    )
    assert (HEADLINE + words in done.stderr) == bool(words)
    assert ("most recent call first" in done.stderr) == bool(words)
