"""An object has another attribute for a while."""

from types import SimpleNamespace

import pytest

from ace_studio.engine.replaced import replaced_attribute


def test_an_attribute_that_was_absent_is_absent_again() -> None:
    owner = SimpleNamespace(a=1)
    with replaced_attribute(owner, "a", 2), replaced_attribute(owner, "b", 3):
        assert vars(owner) == {"a": 2, "b": 3}
    assert vars(owner) == {"a": 1}


def test_an_attribute_is_put_back_when_the_block_raises() -> None:
    owner = SimpleNamespace(a=1)
    with pytest.raises(ZeroDivisionError), replaced_attribute(owner, "a", 2):
        raise ZeroDivisionError
    assert owner.a == 1
