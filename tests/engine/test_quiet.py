"""What libraries print is collected, and their warnings and log lines do not reach the user."""

import logging
import sys
import warnings

import pytest

from ace_studio.engine.quiet import hushed


def test_prints_are_collected_and_warnings_dropped(capsys):
    with hushed() as printed:
        print("a graph")
        sys.stderr.write("50 %")
        warnings.warn("deprecated", UserWarning, stacklevel=1)
    assert printed.getvalue() == "a graph\n50 %"
    assert capsys.readouterr() == ("", "")


def test_logging_is_as_before_after_an_error():
    before = logging.root.manager.disable
    with pytest.raises(ValueError, match="broken"), hushed():
        assert not logging.getLogger("library").isEnabledFor(logging.WARNING)
        assert logging.getLogger("library").isEnabledFor(logging.ERROR)
        raise ValueError("broken")
    assert logging.root.manager.disable == before
