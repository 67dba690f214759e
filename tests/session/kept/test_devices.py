"""The list of devices: three fields, one file, and what is done about a damaged one."""

import pytest

from ace_studio.records.devices import HERE, THIS_MACHINE, make_device
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.session.kept.devices import DeviceList

BOX, PHONE = make_device("box", "user@box", "python3.12"), make_device("phone", "adb:123")


@pytest.fixture
def devices(tmp_path):
    return DeviceList(tmp_path / "config" / "devices.json")


def test_this_machine_is_always_there_and_others_are_kept(devices, tmp_path):
    assert devices.read() == ((THIS_MACHINE,), None) and devices.get(HERE) == THIS_MACHINE
    devices.add(BOX)
    DeviceList(tmp_path / "config" / "devices.json").add(PHONE)
    assert devices.read() == ((THIS_MACHINE, BOX, PHONE), None)
    devices.remove("box")
    assert devices.read()[0] == (THIS_MACHINE, PHONE)


def test_a_name_is_taken_once_and_this_machine_stays(devices):
    devices.add(BOX)
    for device in (BOX, THIS_MACHINE):
        with pytest.raises(AceError) as caught:
            devices.add(device)
        assert caught.value.problem.code is ErrorCode.USAGE and "already" in caught.value.problem.what
    with pytest.raises(AceError, match="stays in the list"):
        devices.remove(HERE)
    with pytest.raises(AceError) as caught:
        devices.get("nobody")
    assert caught.value.problem.why == "it has here, box" and "devices add nobody" in caught.value.problem.remedy


@pytest.mark.parametrize("damage", ["{", '[{"name": "x"}]', "\x00", '[{"name": "x", "kind": "usb", "address": "y"}]'])
def test_of_a_damaged_list_the_one_before_is_used_and_kept(devices, tmp_path, damage):
    path = tmp_path / "config" / "devices.json"
    devices.add(BOX)
    devices.add(PHONE)
    path.write_text(damage)
    found, problem = devices.read()
    assert found == (THIS_MACHINE, BOX) and problem is not None and "damaged" in problem.what
    devices.add(PHONE)
    assert devices.read() == ((THIS_MACHINE, BOX, PHONE), None)
    path.write_text(damage)
    assert devices.read()[0] == (THIS_MACHINE, BOX)  # the damaged list did not become the one before


def test_a_list_that_cannot_be_written_says_so(tmp_path):
    (tmp_path / "config").write_text("a file")
    with pytest.raises(AceError, match="could not be saved"):
        DeviceList(tmp_path / "config" / "devices.json").add(BOX)
