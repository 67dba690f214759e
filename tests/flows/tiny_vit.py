"""A small ViT in a folder, as transformers saves one: written by hand, because to import transformers takes seconds."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file


def write_vit(folder: Path, *, width: int, pixels: int) -> Path:
    """Write it, and return the folder."""
    torch.manual_seed(0)
    wide, block = 2 * width, "vit.encoder.layer.0"
    layers = {f"{block}.attention.attention.{one}": (width, width) for one in ("query", "key", "value")} | {
        f"{block}.attention.output.dense": (width, width),
        f"{block}.intermediate.dense": (wide, width),
        f"{block}.output.dense": (width, wide),
        "vit.embeddings.patch_embeddings.projection": (width, 3, 8, 8),
        "classifier": (5, width),
    }
    norms = (f"{block}.layernorm_before", f"{block}.layernorm_after", "vit.layernorm")
    weights = {f"{name}.weight": torch.randn(shape) / width**0.5 for name, shape in layers.items()}
    weights |= {f"{name}.weight": torch.ones(width) for name in norms}
    weights |= {f"{name}.bias": torch.zeros(shape[0]) for name, shape in layers.items()}
    weights |= {f"{name}.bias": torch.zeros(width) for name in norms}
    weights["vit.embeddings.cls_token"] = torch.zeros(1, 1, width)
    weights["vit.embeddings.position_embeddings"] = torch.randn(1, (pixels // 8) ** 2 + 1, width)
    config = {
        "model_type": "vit", "architectures": ["ViTForImageClassification"], "image_size": pixels, "patch_size": 8,
        "hidden_size": width, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": wide,
        "id2label": {number: f"LABEL_{number}" for number in range(5)},
    }  # fmt: skip
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    save_file(weights, folder / "model.safetensors")
    return folder
