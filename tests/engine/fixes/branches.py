"""Models with branches, the fixes proposed for them, and a check that a rewrite computes the same."""

import sys
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from ace_studio.engine.fixes import ProposedFix, Spot, proposed_fixes
from ace_studio.records.fixes import FixKind

HEAD = "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n"


def source_of(body: str, head: str = HEAD) -> str:
    return head + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n"


def found(tmp_path: Path, body: str, kind: FixKind, *, head: str = HEAD) -> ProposedFix:
    """The one candidate of a kind for the line that is marked with ``# here``."""
    text = source_of(body, head)
    path = tmp_path / "net.py"
    path.write_text(text)
    line = next(number for number, one in enumerate(text.splitlines(), start=1) if "# here" in one)
    (one,) = [one for one in proposed_fixes(Spot.of(str(path), line, nn.Identity())) if one.kind is kind]
    return one


def module_of(text: str) -> Any:
    space = ModuleType(f"net_{abs(hash(text))}")
    sys.modules[space.__name__] = space  # where the compiler looks for it
    exec(compile(text, "net.py", "exec"), vars(space))
    return space.Net().eval()


def assert_same(before: str, after: str, *inputs: Tensor) -> None:
    """Both texts compute the same for every input."""
    torch.manual_seed(0)
    one, other = module_of(before), module_of(after)
    other.load_state_dict(one.state_dict())
    assert inputs
    for given in inputs:
        first, second = one(given.clone()), other(given.clone())
        torch.testing.assert_close(second, first, equal_nan=True)


X = torch.arange(8.0).reshape(2, 4)


EVERY = (X, -X, X * 0, X - 3.5)


EARLY = """
def forward(self, x):
    # decide
    if x.mean() > 0:  # here
        return torch.relu(x) + 1
    # else keep
    y = x * 2
    return y
"""


ELSE = """
def forward(self, x):
    scale = torch.ones(())
    if x.mean() > 0 and not x.isnan().any():  # here
        x = x + 1
        x *= x.sum() + 2
    elif x.sum().item() < -3:
        y = x.abs()
        x = y - 1
    else:
        scale = scale * 3
    return x * scale
"""


CHAIN = """
def forward(self, x):
    a = x + 1
    if a.sum() > 0: return a, {"x": x}  # here
    b = a * 2
    if b.sum() > -5:
        return b, {"x": a}
    return a, {"x": b}
"""


EXPRESSION = """
def forward(self, x):
    y = torch.relu(x) if 0 < x.sum() < 20 else x  # here
    return y
"""


SIDES = """
def forward(self, x):
    if bool(x.min() < 0) or torch.equal(x, x.abs()):  # here
        return [x + 1, x.sum()]
    else:
        z = x - 1
        return [z, z.mean()]
"""


NESTED = """
def forward(self, x):
    if x.sum() > 0:  # here
        if x.max() > 3:
            x = x - 1
        x = x * 2
    return x
"""


FORMS = {"early": EARLY, "else": ELSE, "expression": EXPRESSION, "sides": SIDES, "nested": NESTED}
