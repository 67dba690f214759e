"""The corpus of bad files: one table per kind of file, each case with the code that makes it and its expected outcome.

To add a case, append a ``[[case]]`` with ``name``, ``make`` and what `FileCase` has of outcomes to a table in
``files/``. ``make`` is Python that writes ``path``, or more below ``here``, with the helpers of `NAMES`; a payload is
``shell``, which leaves a mark.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import textwrap
import tomllib
import warnings
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ace_studio.records.advice import Advice, AdviceQuantity
from ace_studio.records.errors import visible
from ace_studio.records.results import encode_result
from tests.jobs.devices.runs import finding, result_of, run_of
from tests.jobs.packs import beyond_the_longest_path, header, make_pack, pack_named

FOLDER = Path(__file__).parent / "files"
TABLES = sorted(path.stem for path in FOLDER.glob("*.toml"))


@dataclass(frozen=True, kw_only=True)
class FileCase:
    """One bad file, and how the commands that open it must end."""

    name: str
    make: str
    """Code that writes the file."""
    file: str = "model.pt"
    """What is opened, below the folder of the case; ``make`` may set another name as ``file``."""
    recipe: str = ""
    """The recipe that is traced instead of the file; ``FILE`` stands for its name."""
    weights: bool = False
    """Whether the file is traced as the weights of an honest model, with trust in that model."""
    command: tuple[str, ...] = ()
    """Words of the one command that runs, instead of ``inspect`` and ``trace``; ``FILE`` as above."""
    trust: bool = False
    """Whether ``trace`` runs with ``--trust``: the case is about data beside a trusted model, never about a payload."""
    code: str = "bad-file"
    """`ErrorCode` of the first problem; empty if the command succeeds."""
    inspect: int = 2
    """Exit code of ``inspect``."""
    words: tuple[str, ...] = ()
    """What the messages must say."""
    hidden: tuple[str, ...] = ()
    """What no output may say."""
    slow: bool = False
    kills: bool = False
    """Whether the engine process ends; the case is slow."""


@dataclass
class Ended:
    """How the commands of a case ended."""

    inspect: int | None = None
    exit: int = 0
    codes: list[str] = field(default_factory=list)
    output: str = ""
    """Everything that was printed."""


def cases(table: str) -> list[FileCase]:
    """The cases of a table."""
    rows = tomllib.loads((FOLDER / f"{table}.toml").read_text("utf-8"))["case"]
    return [
        FileCase(**{key: tuple(value) if isinstance(value, list) else value for key, value in row.items()})
        for row in rows
    ]


def write(case: FileCase, folder: Path) -> str:
    """Write the file of a case, and return its name."""
    import numpy as np
    import torch

    names: dict[str, Any] = {"torch": torch, "np": np, "here": folder, "path": folder / case.file, "file": case.file}
    names |= {"mark": str(folder / "ran"), "shell": f"touch {folder / 'ran'}", **NAMES}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(textwrap.dedent(case.make), names)
    if case.weights:
        python_model(folder)
    if recipe := WEIGHTS if case.weights else case.recipe:
        (folder / "recipe.toml").write_text("format = 1\n" + recipe.replace("FILE", names["file"]), "utf-8")
    return str(names["file"])


def commands(case: FileCase, folder: Path, file: str) -> dict[str, list[str]]:
    """The commands of a case, by their names."""
    opened = str(folder / file)
    if case.command:
        return {"": [word.replace("FILE", opened) for word in case.command]}
    traced = ["trace", "--json", "--no-cache", *(["--trust"] if case.trust or case.weights else [])]
    looked = {} if case.recipe else {"inspect": ["inspect", "--", opened]}
    recipe = str(folder / "recipe.toml") if case.recipe or case.weights else opened
    return looked | {"": [*traced, "--", recipe]}


def run(case: FileCase, folder: Path, file: str, call: Callable[[list[str]], tuple[int, str, str]]) -> Ended:
    """Run the commands of a case.

    Args:
        case: The case.
        folder: Where its files are.
        file: The name of its file.
        call: Runs a command: its words -> exit code, what it wrote to stdout, what to stderr.
    """
    ended = Ended()
    for name, words in commands(case, folder, file).items():
        code, out, err = call(words)
        ended.output += out + err
        if name:
            ended.inspect = code
            continue
        ended.exit = code
        if out.startswith("{"):
            problems = json.loads(out).get("errors", ())
            ended.codes = [one["code"] for one in problems]
            for one in problems:  # a traceback belongs into the details
                ended.output = ended.output.replace(visible(json.dumps(one["details"], ensure_ascii=False)), '""')
    return ended


def torch_zip(path: Path, pickled: bytes, **members: bytes) -> None:
    """Write a zip as torch.save does around a pickle."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {"data.pkl": pickled, "byteorder": b"little", "version": b"3\n", **members}.items():
            archive.writestr(f"archive/{name}", content)


def state_dict(path: Path) -> None:
    """Write an honest state dict."""
    import torch

    torch.save({"weight": torch.ones(3, 4), "bias": torch.ones(3)}, path)


def change_bytes(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Replace the content of a file."""
    path.write_bytes(change(path.read_bytes()))


def member_of(path: Path, ending: str) -> zipfile.ZipInfo:
    """The entry of a member in an archive."""
    with zipfile.ZipFile(path) as archive:
        return next(info for info in archive.infolist() if info.filename.endswith(ending))


def change_member(path: Path, ending: str, change: Callable[[bytes], bytes]) -> None:
    """Replace the content of a member of an archive, with a right checksum."""
    with zipfile.ZipFile(path) as archive:
        content = {info.filename: archive.read(info) for info in archive.infolist()}
    assert any(name.endswith(ending) for name in content), list(content)
    with zipfile.ZipFile(path, "w") as archive:
        for name, held in content.items():
            archive.writestr(name, change(held) if name.endswith(ending) else held)


def zeros(archive: zipfile.ZipFile, name: str, *, megabytes: int) -> None:
    """Add a compressed member of zeros. Only one megabyte is compressed; the others are copies of it."""
    packer, megabyte = zlib.compressobj(wbits=-zlib.MAX_WBITS), bytes(1_000_000)
    packed = packer.compress(megabyte) + packer.flush(zlib.Z_FULL_FLUSH)
    info = zipfile.ZipInfo(name)
    with archive.open(info, "w") as member:
        for _ in range(megabytes):
            member.write(packed)
        member.write(packer.flush())
    checksum = 0
    for _ in range(megabytes):
        checksum = zlib.crc32(megabyte, checksum)
    info.compress_type, info.file_size, info.CRC = zipfile.ZIP_DEFLATED, len(megabyte) * megabytes, checksum
    assert archive.fp is not None
    archive.fp.seek(info.header_offset)
    archive.fp.write(info.FileHeader())
    archive.fp.seek(archive.start_dir)


def safetensors(path: Path, header: object, data: bytes = b"", *, length: int | None = None) -> None:
    """Write a header, as it is or as JSON, and the bytes that follow it."""
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(raw) if length is None else length) + raw + data)


def entry(begin: int, end: int, *, shape: tuple[int, ...] = (4,), dtype: str = "F32") -> dict[str, Any]:
    """One tensor of a safetensors header."""
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def onnx_model(
    path: Path, nodes: list[Any], *, tensors: list[Any] | None = None, x: object = (2, 4), **more: Any
) -> None:
    """Write a model from ``x`` to ``y`` of these nodes, without a check."""
    from onnx import TensorProto, helper

    info = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, x),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, None),
    ]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:], tensors or [])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(more.pop("domain", ""), more.pop("opset", 18))])
    model.ir_version = 9
    for key, value in more.items():
        setattr(model, key, value)
    path.write_bytes(model.SerializeToString())


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    """A node of ONNX whose inputs and outputs are words."""
    from onnx import helper

    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def tensor(name: str, dims: list[int], *, data: bytes = b"", outside: dict[str, str] | None = None) -> Any:
    """A float initializer with these claims."""
    from onnx import TensorProto

    made = TensorProto(name=name, dims=dims, data_type=TensorProto.FLOAT, raw_data=data)
    if outside is not None:
        made.ClearField("raw_data")
        made.data_location = TensorProto.EXTERNAL
        for key, value in outside.items():
            made.external_data.add(key=key, value=value)
    return made


def onnx_with(path: Path, weight: Any, **more: Any) -> None:
    """Write a model that adds an initializer ``w`` to its input."""
    onnx_model(path, [node("Add", "x w", "y")], tensors=[weight], **more)


def branch(outputs: str) -> Any:
    """A graph of ONNX without inputs that gives one constant, as the branches of If have it."""
    from onnx import TensorProto, helper

    made = node("Constant", "", outputs, value=tensor("v", [1], data=bytes(4)))
    return helper.make_graph([made], "b", [], [helper.make_tensor_value_info(outputs, TensorProto.FLOAT, [1])])


@cache
def _exported() -> bytes:
    import torch

    stream = io.BytesIO()
    torch.export.save(torch.export.export(torch.nn.Linear(4, 3), (torch.ones(2, 4),)), stream)
    return stream.getvalue()


def exported(path: Path) -> None:
    """Write an honest ``.pt2``."""
    path.write_bytes(_exported())


def scripted(path: Path, *, forward: str = "return x", setstate: str = "pass") -> None:
    """Write a TorchScript file whose code is replaced afterwards by other code of the same language."""
    import torch

    source = path.with_name("scripted.py")
    lines = textwrap.indent(forward, "        ")
    restored = textwrap.indent(setstate, "        ")
    source.write_text(
        "import torch\nfrom typing import Tuple\nfrom torch import Tensor, nn\nclass Net(nn.Module):\n"
        "    def forward(self, x: Tensor) -> Tensor:\n" + lines + "\n"
        "    @torch.jit.export\n    def __getstate__(self) -> Tuple[bool, bool]:\n"
        "        return (True, self.training)\n"
        "    @torch.jit.export\n    def __setstate__(self, state: Tuple[bool, bool]) -> None:\n"
        "        self.training = state[1]\n" + restored + "\n"
    )
    import importlib.util

    spec = importlib.util.spec_from_file_location("scripted_" + path.stem, source)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    torch.jit.save(torch.jit.script(module.Net()), path)
    source.unlink()


def npy(path: Path, shape: object, data: bytes = b"", *, dtype: str = "'<f4'", raw: bytes = b"") -> None:
    """Write an array whose header says what it is told to."""
    text = raw or f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape!r}, }}".encode()
    header = text + b" " * (63 - (len(text) + 10) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data)


def png(path: Path, width: int, height: int) -> None:
    """Write a PNG of that claimed size with almost nothing in it."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(bytes(100))) + chunk(b"IEND", b""))


def python_model(folder: Path, *, shape: str = "1, 4", code: str = "") -> None:
    """Write an honest ``net.py`` with a model of 4 inputs, or of images."""
    forward = "return self.linear(x)" if "," not in shape[3:] else "return x.mean((2, 3))"
    (folder / "net.py").write_text(
        f"import torch\nfrom torch import nn\n{code}\nclass Net(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.linear = nn.Linear(4, 3)\n"
        f"    def forward(self, x):\n        {forward}\n\ndef inputs():\n    return [(torch.ones({shape}),)]\n"
    )


def hugging_face(folder: Path, *, config: object = None, **files: str) -> None:
    """Write a folder of a tiny BERT with weights of another model, or with other files.

    Args:
        folder: Is made.
        config: Changes of the configuration, or the whole of it as text or bytes.
        files: Name, with ``__`` for a dot -> text; then there are no weights.
    """
    tiny = {
        "model_type": "bert", "architectures": ["BertModel"], "hidden_size": 8, "num_hidden_layers": 1,
        "num_attention_heads": 1, "intermediate_size": 8, "vocab_size": 10, "max_position_embeddings": 8,
    }  # fmt: skip
    folder.mkdir(exist_ok=True)
    content = tiny | config if isinstance(config, dict) else tiny if config is None else config
    raw = json.dumps(content).encode() if isinstance(content, dict) else content
    (folder / "config.json").write_bytes(raw if isinstance(raw, bytes) else str(raw).encode())
    if not files:
        safetensors(folder / "model.safetensors", {"a": entry(0, 16)}, bytes(16))
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def nested(depth: int = 100_000, *, left: str = "[", right: str = "]") -> str:
    """Brackets in brackets."""
    return left * depth + right * depth


def pack(folder: Path, *more: Any, said: dict[str, Any] | None = None) -> str:
    """Write an engine pack with more members, or with other words about itself; returns its name."""
    return make_pack(folder, more=more, said=said or {}).name


def result_folder(place: Path, *, sizes: list[int] | None = None, advice: bool = False, **told: str) -> None:
    """Write a folder as a run leaves it.

    Args:
        place: Is made, with an empty folder for artifacts.
        sizes: Of the input that was measured.
        advice: Whether there is a card of advice.
        told: ``artifact`` and ``target`` of its one run, ``folder`` and ``recipe`` of the result.
    """
    (place / "artifacts").mkdir(parents=True)
    run = run_of(told.pop("target", "onnxruntime"), artifact=told.pop("artifact", ""))
    made = result_of(run, **({} if sizes is None else {"inputs": (finding(sizes=tuple(sizes)),)}))
    card = Advice(
        kind="precision-bf16", title="Try bf16", why="", estimate="", quantity=AdviceQuantity.LATENCY,
        estimated_gain=2.0, change={"plan": {"default": "bf16"}},
    )  # fmt: skip
    made = replace(made, advice=(card,) if advice else (), **told)
    (place / "result.json").write_bytes(encode_result(made))


class Calls:
    """Runs a shell command when it is unpickled: the plain payload."""

    def __init__(self, shell: str) -> None:
        self.shell = shell

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (self.shell,)  # noqa: TID251 - what it must never come to


WEIGHTS = '[model]\nsource = "net.py"\nentry = "Net"\nweights = "FILE"\n[inputs]\ntracing = "inputs"\n'
NAMES: dict[str, Any] = {
    one.__name__: one
    for one in (
        torch_zip, state_dict, change_bytes, member_of, change_member, zeros, safetensors, entry, onnx_model, onnx_with,
        node, tensor, branch, exported, scripted, npy, png, python_model, hugging_face, nested, Calls, zipfile, json,
        os, pickle, struct, io, partial, pack, header, beyond_the_longest_path, result_folder,
    )
    if hasattr(one, "__name__")
} | {"partial": partial, "TOP": pack_named()}  # fmt: skip
