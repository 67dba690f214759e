"""The three words of a device."""

import pytest

from ace_studio.records.devices import DeviceKind, make_device
from ace_studio.records.errors import AceError, ErrorCode


@pytest.mark.parametrize(
    ("place", "kind", "address"),
    [
        ("user@box", DeviceKind.SSH, "user@box"),
        ("box.local", DeviceKind.SSH, "box.local"),
        ("adb:emulator-5554", DeviceKind.ADB, "emulator-5554"),
        ("adb:192.168.1.5:5555", DeviceKind.ADB, "192.168.1.5:5555"),
        ("adb:", DeviceKind.ADB, ""),
        ("here", DeviceKind.LOCAL, "here"),
    ],
)
def test_the_address_says_how_a_device_is_reached(place, kind, address):
    device = make_device("d-1", place)
    assert (device.kind, device.address, device.place) == (kind, address, place)


@pytest.mark.parametrize("name", ["", "cuda", "auto", "a b", "-x", "x" * 41, "a/b", "ü"])
def test_a_name_is_one_word_that_a_recipe_does_not_use(name):
    with pytest.raises(AceError) as caught:
        make_device(name, "box")
    assert caught.value.problem.code is ErrorCode.USAGE and caught.value.problem.why


@pytest.mark.parametrize("place", ["", "-oProxyCommand=x", "a b", "adb:-s x", "adb:a;b", "box;ls"])
def test_no_address_can_be_an_option_or_a_command(place):
    with pytest.raises(AceError, match="is not the address of a device"):
        make_device("d", place)


def test_android_has_no_python():
    with pytest.raises(AceError, match="needs no Python"):
        make_device("d", "adb:1", "python3")
