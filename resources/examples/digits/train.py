"""Train the shipped example from scratch and write its weights: ``python train.py [--out FILE]``.

The recipe is plain: Adam, one-cycle learning rate, pictures shifted by up to a pixel, a fixed number of epochs. The
held-out pictures are looked at once, at the end; nothing is chosen by them.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from model import WEIGHTS, DigitNet, Split, evaluate, load_splits
from safetensors.torch import save_file
from torch import Tensor, nn

EPOCHS = 40
BATCH = 64
LEARNING_RATE = 3e-3
SEED = 0


def train(split: Split, *, epochs: int = EPOCHS, seed: int = SEED) -> DigitNet:
    """A network trained on these pictures; the same one every time on the same machine."""
    torch.manual_seed(seed)
    model = DigitNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=1e-2)
    steps = epochs * -(-len(split.digits) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=LEARNING_RATE, total_steps=steps)
    for _ in range(epochs):
        for chosen in torch.randperm(len(split.digits)).split(BATCH):
            loss = nn.functional.cross_entropy(
                model(_shifted(split.pixels[chosen])), split.digits[chosen], label_smoothing=0.05
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return model.eval()


def _shifted(pixels: Tensor) -> Tensor:
    """Each picture [n, 1, 8, 8] moved by -1, 0 or 1 pixels in both directions, filled with black."""
    padded = nn.functional.pad(pixels, (1, 1, 1, 1))
    size = pixels.shape[-1]
    down, right = torch.randint(0, 3, (2, len(pixels))).tolist()
    return torch.stack(
        [picture[:, y : y + size, x : x + size] for picture, y, x in zip(padded, down, right, strict=True)]
    )


def main() -> None:
    """Train, write the weights, and say how good they are on pictures that were held out."""
    parser = argparse.ArgumentParser(description="Train the digits example.")
    parser.add_argument("--out", type=Path, default=WEIGHTS, help="where to write the weights")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    options = parser.parse_args()
    torch.set_num_threads(1)  # the order of additions, and so the weights, depend on the threads
    start = time.perf_counter()
    train_split, _ = load_splits()
    model = train(train_split, epochs=options.epochs)
    save_file(model.state_dict(), options.out)
    with torch.no_grad():
        accuracy = evaluate(model)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    print(f"{parameters} parameters, held-out accuracy {accuracy:.4f}, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
