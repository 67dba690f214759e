"""Says which models of installed packages a file of weights belongs to, by the names and shapes of its tensors.

Building every model would take minutes, so a table that ships with the program maps a hash of names and shapes to
models. ``packaging/refresh_known_models.py`` writes the table for the packages that are installed.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from ace_studio.engine.load.state_match import unwrapped
from ace_studio.records.messages import StoredTensor

TABLE = Path(__file__).with_name("known.json")
_COUNTER = "num_batches_tracked"
_Named = tuple[str, tuple[int, ...]]
_USUAL_CLASSES = (1000, 21841, 21)
"""Classes of ImageNet, of its large edition, and of the segmentation models."""
MOST_NAMES = 6
_DEEPEST_PREFIX = 2
_FAMILIES = {
    "bert": "BERT", "distilbert": "DistilBERT", "roberta": "RoBERTa", "albert": "ALBERT", "electra": "ELECTRA",
    "deberta": "DeBERTa", "mpnet": "MPNet", "vit": "ViT", "wav2vec2": "wav2vec 2.0", "hubert": "HuBERT",
    "whisper": "Whisper", "gpt_neox": "GPT-NeoX", "mobilebert": "MobileBERT", "clip": "CLIP", "segformer": "SegFormer",
}  # fmt: skip
"""First part of the names of a Hugging Face model -> its family."""


def fitting_models(tensors: Sequence[StoredTensor]) -> tuple[str, ...]:
    """Models that have exactly these tensors, such as ``timm:resnet18``; only of packages that are installed.

    Where only the number of classes differs, it is in the name: ``timm:resnet18?num_classes=7``.
    """
    known = _known()
    for names in _readings(tensors):
        for classes, usual in ((0, names), *_with_usual_classes(names)):
            found = [
                one for one in known.get(hash_of_tensors(usual), ()) if find_spec(one.partition(":")[0]) is not None
            ]
            if found:
                # A quantized model's class has the tensors of the plain one, but computes something else.
                found.sort(key=lambda one: "quantized_" in one)
                return tuple(f"{one}?num_classes={classes}" if classes else one for one in found[:MOST_NAMES])
    return ()


def weights_summary(tensors: Sequence[StoredTensor]) -> tuple[str, ...]:
    """What the file holds, in words: count, values, types, a common beginning of the names, and a known family."""
    if not tensors:
        return ()
    values = sum(math.prod(one.shape) for one in tensors)
    types = ", ".join(f"{count} {dtype}" for dtype, count in Counter(one.dtype or "unknown" for one in tensors).items())
    said = [f"{len(tensors)} tensors with {values:,} values: {types}"]
    heads = {one.name.partition(".")[0] for one in tensors}
    if len(heads) == 1 and all("." in one.name for one in tensors):
        said.append(f"all names begin with '{next(iter(heads))}.'")
    families = [_FAMILIES[head] for head in sorted(heads) if head in _FAMILIES]
    if families:
        said.append(
            f"the names are those of {families[0]} in transformers; with its config.json beside it, open the folder"
        )
    return tuple(said)


def _readings(tensors: Sequence[StoredTensor]) -> Iterable[list[_Named]]:
    """Names and shapes as they are, and below the keys that a checkpoint wraps around them."""
    named = [(unwrapped(one.name), one.shape) for one in tensors]
    yield named
    for _ in range(_DEEPEST_PREFIX):
        heads = Counter(name.partition(".")[0] for name, _ in named)
        head = next((word for word in ("state_dict", "model", "net", "model_state_dict") if word in heads), "")
        if not head and len(heads) == 1:
            head = next(iter(heads))
        named = [(name.partition(".")[2], shape) for name, shape in named if name.startswith(f"{head}.")]
        if not head or not named:
            return
        yield named


def _with_usual_classes(names: Sequence[_Named]) -> Iterator[tuple[int, list[_Named]]]:
    """Yield the names with the shapes of the package's weights, for each number that may be the file's classes.

    The classes are the first size of a last layer: a matrix, or a convolution of one pixel, with a bias of that size.
    """
    shapes = dict(names)
    heads: dict[int, set[str]] = {}
    for name, shape in names:
        stem = name.removesuffix("weight")
        is_matrix = len(shape) >= 2 and all(size == 1 for size in shape[2:])
        if stem != name and is_matrix and shapes.get(f"{stem}bias") == shape[:1]:
            heads.setdefault(shape[0], set()).update((name, f"{stem}bias"))
    last = [shape[0] for name, shape in names if name in heads.get(shape[0] if shape else 0, ())]
    for classes in dict.fromkeys(reversed(last)):
        for usual in _USUAL_CLASSES:
            changed = heads[classes]
            yield classes, [(name, (usual, *shape[1:]) if name in changed else shape) for name, shape in names]


def hash_of_tensors(named: Iterable[tuple[str, Sequence[int]]]) -> str:
    """What the table knows a model by."""
    lines = sorted(f"{name}:{'x'.join(map(str, shape))}" for name, shape in named if not name.endswith(_COUNTER))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]


@cache
def _known() -> dict[str, list[str]]:
    table: dict[str, list[str]] = json.loads(TABLE.read_text(encoding="utf-8"))
    return table
