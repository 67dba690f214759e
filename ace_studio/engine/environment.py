"""Versions, devices and processor of this machine, and known problems of this environment."""

import importlib.metadata
import os
import platform
import re
import sys

import psutil
import torch

from ace_studio.records import containment
from ace_studio.records.errors import AceError, ErrorCode
from ace_studio.records.messages import DeviceReport, EnvironmentReport, TargetReport
from ace_studio.records.processor import cpu_flags, cpuinfo
from ace_studio.records.targets import TARGET_ROWS

PACKAGES = (
    "ace-studio", "torch", "torchvision", "torchao", "transformers", "timm", "torch-pruning", "safetensors", "numpy",
)  # fmt: skip
"""Packages whose versions matter, besides those that targets need."""


_INSTRUCTIONS = re.compile(
    r"avx2|fma|f16c|avx512(f|_vnni|_bf16|_fp16)|avx_vnni(_int8)?|amx_\w+|asimd(dp|hp)?|i8mm|bf16|sve2?"
)
"""Instruction sets that decide which kernels run, as Linux names them."""


def processor_name() -> str:
    """The processor's name; the architecture if the system does not tell."""
    return cpuinfo("model name") or platform.processor() or platform.machine()


def package_versions() -> dict[str, str]:
    """Version of each package that matters and is installed."""
    versions = {}
    of_targets = [package for row in TARGET_ROWS.values() for package in row.packages]
    for name in dict.fromkeys((*PACKAGES, *of_targets)):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def devices() -> tuple[DeviceReport, ...]:
    """Every device that models could run on; CUDA with the reason if it is unavailable."""
    found = [
        DeviceReport(name="cpu", label=processor_name(), available=True, memory_bytes=psutil.virtual_memory().total)
    ]
    if torch.cuda.is_available():
        for index in range(torch.cuda.device_count()):
            properties = torch.cuda.get_device_properties(index)
            found.append(
                DeviceReport(
                    name=f"cuda:{index}", label=properties.name, available=True, memory_bytes=properties.total_memory
                )
            )
    else:
        found.append(DeviceReport(name="cuda", label="CUDA", available=False, reason=_why_no_cuda()))
    return tuple(found)


def _why_no_cuda() -> str:
    if torch.version.cuda is None:
        return "this torch was built without CUDA"
    return "no CUDA device answers (no driver, or no GPU in this machine)"


def choose_device(word: str) -> torch.device:
    """The device of ``[measure] device``; ``auto`` is CUDA if there is one.

    Raises: AceError(NOT_INSTALLED) if CUDA is asked for and there is none; AceError(USAGE) for another word.
    """
    if word == "auto":
        return torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    if word == "cpu":
        return torch.device("cpu")
    if word == "cuda" or word.startswith("cuda:"):
        if torch.cuda.is_available():
            return torch.device("cuda:0" if word == "cuda" else word)
        raise AceError.of(
            ErrorCode.NOT_INSTALLED,
            "There is no CUDA device for this job",
            why=_why_no_cuda(),
            remedy='Set [measure] device = "cpu" or "auto", or run on a machine with a GPU.',
            where="[measure] device",
        )
    raise AceError.of(
        ErrorCode.USAGE, f"'{word}' is not a device", remedy="Use auto, cpu or cuda.", where="[measure] device"
    )


def known_traps() -> tuple[str, ...]:
    """Known problems of this environment, each with its remedy in the same sentence."""
    notes = []
    versions = package_versions()
    if "torchvision" in versions and "+cpu" in versions.get("torch", "") and "+cpu" not in versions["torchvision"]:
        build = versions["torchvision"].partition("+")[0] + "+cpu"
        notes.append(
            "torchvision is not the CPU build that belongs to this torch, and importing it may fail with 'operator "
            f"torchvision::nms does not exist': {sys.executable} -m pip install --no-deps torchvision=={build}"
        )
    return tuple(notes)


def environment_report(targets: tuple[TargetReport, ...]) -> EnvironmentReport:
    """Everything ``doctor`` shows."""
    can_contain, reason = containment.available()
    return EnvironmentReport(
        python=platform.python_version(),
        executable=sys.executable,
        platform=platform.platform(),
        cpu=processor_name(),
        cores=os.cpu_count() or 1,
        memory_bytes=psutil.virtual_memory().total,
        versions=package_versions(),
        devices=devices(),
        targets=targets,
        notes=known_traps(),
        containment=reason if can_contain else f"not available: {reason}",
    )


def result_environment(*, threads: int, device: torch.device) -> dict[str, str | int | float | bool | None]:
    """The machine that a result was measured on, as the result stores it."""
    facts: dict[str, str | int | float | bool | None] = {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": processor_name(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "cpu_instructions": " ".join(sorted(filter(_INSTRUCTIONS.fullmatch, cpu_flags()))),
        "cores": os.cpu_count() or 1,
        "memory_bytes": psutil.virtual_memory().total,
        "threads": threads,
        "device": str(device),
        "device_name": torch.cuda.get_device_name(device) if device.type == "cuda" else processor_name(),
    }
    return facts | dict(package_versions().items())
