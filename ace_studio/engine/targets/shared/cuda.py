"""What the targets for NVIDIA GPUs share: why a GPU, or its 8-bit floats, cannot be used here."""

import torch

from ace_studio.engine.targets.base import Availability, Target

FP8_CAPABILITY = (8, 9)
"""The first generation with 8-bit floats (Ada); Hopper is 9.0."""


def cuda_problem() -> str:
    """Empty if torch can use a CUDA device, else why not."""
    if torch.cuda.is_available():
        return ""
    if torch.version.cuda is None:
        return f"no CUDA device can be used: torch {torch.__version__} was built without CUDA"
    return f"no CUDA device was found (torch {torch.__version__}, CUDA {torch.version.cuda})"


def fp8_problem() -> str:
    """Empty if the first CUDA device computes with 8-bit floats, else why not."""
    if problem := cuda_problem():
        return problem
    capability = torch.cuda.get_device_capability(0)
    if capability >= FP8_CAPABILITY:
        return ""
    needed, has = (".".join(str(part) for part in one) for one in (FP8_CAPABILITY, capability))
    return f"{torch.cuda.get_device_name(0)} has compute capability {has}, 8-bit floats need {needed}"


class CudaTarget(Target):
    """A target that runs on NVIDIA GPUs only."""

    def available(self) -> Availability:
        """Whether there is a GPU, and the packages."""
        if not (problem := cuda_problem()):
            return super().available()
        missing = self.missing()
        reason = "; ".join(filter(None, (problem, missing)))
        return Availability(ok=False, reason=reason, install=self.row.install if missing else "")

    def device_problem(self, device: torch.device) -> str:
        """It runs where CUDA does."""
        return (
            "" if device.type == "cuda" else f"{self.label} runs on NVIDIA GPUs only, and this job measures on {device}"
        )
