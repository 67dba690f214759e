"""How long a stranger's file takes to a verified artifact of ``auto``, as whole commands in fresh processes.

    python -m tests.benchmarks.bench_time --out FOLDER [--only NAME ...]

Each model is a folder as its user has it, with a recipe that asks for the fastest artifact within a goal: the shipped
example, MobileNetV2 of torchvision, and encoders of the sizes of MiniLM and BERT-base as folders of Hugging Face, these
three with random weights. ``ace-studio run`` has empty user folders, so that nothing is reused from an earlier job; the
compiler's cache is empty too. The limits are those of two cores. FOLDER gets ``figures.json``, with the share of this
machine's ceilings that each chosen artifact reaches, and each run's output with the seconds of its phases. The exit
status is 1 if a limit is exceeded or no artifact is verified.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ace_studio.engine.load.torchvision.ops import make_importable
from ace_studio.records.places import example_recipe
from ace_studio.records.results import Result, RunStatus, decode_result
from ace_studio.records.targets import TARGET_ROWS
from tests.benchmarks.figures import Figure, ceilings_of, conclude, digits

RECIPE = """\
format = 1
[model]
source = "{source}"
{inputs}
[goal]
min_sqnr_db = 20.0
"""
IDS = """\
[[inputs.rows]]
input_ids = { shape = [1, 64], dtype = "int64", values = "random 0..29999" }
[[inputs.rows]]
input_ids = { shape = [1, 128], dtype = "int64", values = "random 0..29999" }
"""
PICTURES = """\
[[inputs.rows]]
x = { shape = [1, 3, 224, 224], dtype = "float32", values = "random" }
"""


def _example(folder: Path) -> None:
    shutil.copytree(example_recipe().parent, folder, dirs_exist_ok=True)


def _mobilenet(folder: Path) -> None:
    (folder / "recipe.toml").write_text(RECIPE.format(source="torchvision:mobilenet_v2", inputs=PICTURES))


def _encoder(folder: Path, *, layers: int, width: int) -> None:
    make_importable()
    from transformers import BertConfig, BertModel

    sizes = {"num_hidden_layers": layers, "hidden_size": width, "intermediate_size": 4 * width}
    BertModel(BertConfig(num_attention_heads=12, **sizes)).eval().save_pretrained(folder / "encoder")
    (folder / "recipe.toml").write_text(RECIPE.format(source="encoder", inputs=IDS))


class Case(NamedTuple):
    """One model, and the seconds that it may take."""

    what: str
    make: Callable[[Path], None]
    limit_s: float


CASES = {
    "digits": Case("the shipped example", _example, 30.0),
    "mobilenet_v2": Case("MobileNetV2", _mobilenet, 120.0),
    "minilm": Case("an encoder of MiniLM's size", lambda folder: _encoder(folder, layers=6, width=384), 240.0),
    "bert_base": Case("an encoder of BERT-base's size", lambda folder: _encoder(folder, layers=12, width=768), 600.0),
}


def run_case(name: str, folder: Path) -> tuple[float, Result]:
    """Make the model, run its recipe as a command, and return the wall seconds and the result.

    Raises: RuntimeError if the command ended without a result.
    """
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "model").mkdir(parents=True)
    CASES[name].make(folder / "model")
    own = {f"XDG_{kind}_HOME": str(folder / "user") for kind in ("CONFIG", "DATA", "STATE", "CACHE")}
    environment = os.environ | own | {"TORCHINDUCTOR_CACHE_DIR": str(folder / "user" / "inductor")}
    words = ["run", str(folder / "model" / "recipe.toml"), "--out", str(folder / "out"), "--trust", "--json"]
    began_s = time.perf_counter()
    with (folder / "log.txt").open("wb") as log:
        done = subprocess.run(
            [sys.executable, "-m", "ace_studio", *words], stdout=log, stderr=log, env=environment, check=False
        )
    took_s = time.perf_counter() - began_s
    path = folder / "out" / "result.json"
    if not path.exists():
        raise RuntimeError(f"{name} ended with status {done.returncode} and no result; see {folder / 'log.txt'}")
    return took_s, decode_result(path.read_bytes())


def figure_of(name: str, took_s: float, result: Result) -> Figure:
    """The seconds; lost beyond the limit, and without a verified artifact that was chosen."""
    case = CASES[name]
    run = result.runs[result.chosen] if result.chosen is not None else None
    is_verified = run is not None and run.status is RunStatus.OK and bool(run.verified)
    chosen = f"{run.precision} in {TARGET_ROWS[run.target].label}" if run is not None else "nothing"
    what = f"{case.what} takes {digits(took_s)} s from its file to a verified artifact"
    return Figure(
        id=f"time.{name}", what=f"{what} ({chosen}; limit: {case.limit_s:g} s)", value=took_s, unit="s",
        peer="limit", peer_value=case.limit_s, lost=took_s > case.limit_s or not is_verified,
    )  # fmt: skip


def main() -> int:
    """Run every case, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES))
    options = parser.parse_args()
    figures = []
    for name in options.only:
        took_s, result = run_case(name, options.out.absolute() / name)
        figures += [figure_of(name, took_s, result), *ceilings_of(f"time.{name}", CASES[name].what, result)]
        phases = ", ".join(f"{phase} {seconds:.0f} s" for phase, seconds in result.phase_seconds.items() if seconds > 1)
        print(f"{name}: {took_s:.0f} s ({phases})", flush=True)
    return conclude(options.out, figures)


if __name__ == "__main__":
    sys.exit(main())
