"""Reads a Hugging Face folder: configuration, weight files, own code. Runs nothing and needs no transformers."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ace_studio.engine.load.sniff import bad_file
from ace_studio.records.errors import AceError
from ace_studio.records.safe_file import read_plain
from ace_studio.records.shards import shard_files

CONFIG = "config.json"
INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
SINGLE_FILES = ("model.safetensors", "pytorch_model.bin")
FOLDER_FILES = (CONFIG, *INDEXES)
"""Files that open their folder when they are opened."""
_COMPANIONS = {"preprocessor": "preprocessor_config.json", "tokenizer": "tokenizer_config.json"}
_LARGEST_CONFIG_BYTES = 10_000_000


@dataclass(frozen=True)
class ModelFolder:
    """A folder and its parsed configuration."""

    path: Path
    config: Mapping[str, Any]

    @property
    def facts(self) -> Mapping[str, Any]:
        """The configuration, and those of the pictures and the tokens under ``preprocessor`` and ``tokenizer``."""
        found: dict[str, Any] = dict(self.config)
        for key, name in _COMPANIONS.items():
            with suppress(AceError, OSError):  # they only improve what is proposed
                found[key] = _read_json(self.path / name)
        return found

    @property
    def architectures(self) -> tuple[str, ...]:
        """Class names in the configuration, the one that the model was saved from first."""
        names = self.config.get("architectures")
        return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()

    @property
    def model_type(self) -> str:
        """The family, such as ``bert`` or ``llama``; empty if the configuration names none."""
        return str(self.config.get("model_type") or "")

    @property
    def auto_map(self) -> Mapping[str, str]:
        """``AutoModel`` and so on -> ``file.Class`` of the folder's own code."""
        found = self.config.get("auto_map")
        return {key: value for key, value in found.items() if isinstance(value, str)} if isinstance(found, dict) else {}

    @property
    def needs_its_own_code(self) -> bool:
        """Whether the folder brings the model's code, and the installed transformers has no model of its type."""
        return bool(self.auto_map) and not knows_type(self.model_type)

    @property
    def code_files(self) -> tuple[Path, ...]:
        """The Python files of the folder and of the folders in it: a class may be named in any of them."""
        return tuple(sorted(file for file in self.path.rglob("*.py") if file.is_file()))

    def weight_files(self) -> tuple[Path, ...]:
        """The files that hold the weights, safetensors before pickles; empty if there are none.

        Raises: AceError(BAD_FILE) if an index is damaged or names a file that is not here.
        """
        for index, single in zip(INDEXES, SINGLE_FILES, strict=True):
            if (self.path / single).is_file():
                return (self.path / single,)
            if (self.path / index).is_file():
                return shard_files(self.path / index)
        return ()

    def check_names(self) -> None:
        """Raise AceError(BAD_FILE) if the configuration has timm read a file or a folder that lies anywhere."""
        text = json.dumps(self.config)
        if '"checkpoint_path": "' in text or '"local-dir:' in text:
            what, remedy = "names a file for timm to read", "take that out, and put the weights into the folder"
            raise bad_file(self.path / CONFIG, what, why="it may lie anywhere", remedy=remedy)

    def files(self) -> tuple[Path, ...]:
        """Every file that is read."""
        code = self.code_files if self.needs_its_own_code else ()
        return (self.path / CONFIG, *self.weight_files(), *code)


def looks_like_huggingface(folder: Path) -> bool:
    """Whether the folder has a configuration that names a model type or class."""
    try:
        config = _read_json(folder / CONFIG)
    except (AceError, OSError):
        return False
    return "model_type" in config or "architectures" in config


def read_folder(path: Path) -> ModelFolder:
    """Read the configuration. Raises: AceError(BAD_FILE) if it is damaged."""
    return ModelFolder(path, _read_json(path / CONFIG))


def knows_type(model_type: str) -> bool:
    """Whether the installed transformers has the family; transformers is not imported."""
    spec = find_spec("transformers")
    if spec is None or not spec.submodule_search_locations or not model_type.replace("-", "_").isidentifier():
        return False
    return (Path(next(iter(spec.submodule_search_locations))) / "models" / model_type.replace("-", "_")).is_dir()


def _read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object. Raises: AceError(BAD_FILE) if the file holds none; FileNotFoundError."""
    try:
        content = json.loads(read_plain(path, most=_LARGEST_CONFIG_BYTES))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise bad_file(path, "could not be read", why=error.strerror or str(error)) from error
    except (ValueError, RecursionError) as error:
        raise bad_file(path, "is not valid JSON", why=str(error)[:200]) from error
    if not isinstance(content, dict):
        raise bad_file(path, "is not a table in JSON", why=f"it is a {type(content).__name__}")
    return content
