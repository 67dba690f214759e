"""Which source files are the user's."""

import traceback
from pathlib import Path

import torch

from ace_studio.engine.user_files import is_user_file, user_place

TORCH = Path(torch.__file__).parent


def test_torch_is_no_user_file_but_torchvision_beside_it_is() -> None:
    assert not is_user_file(str(TORCH / "nn" / "modules" / "conv.py"))
    assert is_user_file(str(TORCH.parent / "torchvision" / "models" / "resnet.py"))
    assert not is_user_file(traceback.__file__)
    assert not is_user_file("<string>")


def test_the_users_line_is_the_innermost_one_outside_torch() -> None:
    trace = (
        'File "/home/me/net.py", line 7, in forward\n    x = self.conv(x)\n'
        f'File "{TORCH}/nn/modules/conv.py", line 9, in forward\n    return F.conv2d(x)'
    )
    assert user_place(trace) == ("/home/me/net.py", 7)
    assert user_place('File "/lib/torchvision/models/resnet.py", line 3, in forward') == (
        "/lib/torchvision/models/resnet.py",
        3,
    )
    assert user_place("") == ("", 0)


def test_torch_reached_through_a_linked_environment_is_torch(tmp_path: Path) -> None:
    linked = tmp_path / ".venv"
    linked.symlink_to(TORCH.parent)
    inside = linked / "torch" / "nn" / "modules" / "conv.py"
    assert not is_user_file(str(inside))
    trace = f'File "{tmp_path}/net.py", line 7, in forward\nFile "{inside}", line 9, in forward'
    assert user_place(trace) == (f"{tmp_path}/net.py", 7)
