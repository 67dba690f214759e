"""What must fit together in a recipe: values that need another one, exclude it, or have to match it."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ace_studio.records.recipes.fault import Fault, nearest_hint, path_text
from ace_studio.records.recipes.recipe import METRIC_NAMES
from ace_studio.records.recipes.toml_lines import KeyPath

_WORDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_DIM_KEY = re.compile(r"(.+)\.([0-9]{1,9})", re.DOTALL)


def contradictions(document: Mapping[str, Any]) -> Iterator[Fault]:
    """Values that are missing or contradict each other. Tables of a wrong type are left to the check of types."""
    tables = {name: table for name, table in document.items() if isinstance(table, dict)}
    inputs, calibration = tables.get("inputs", {}), tables.get("calibration", {})
    if "model" in tables or "model" not in document:
        yield from _source_faults(tables.get("model", {}))
    yield from _finetune_faults(tables.get("finetune", {}))
    yield from _metric_faults(tables.get("evaluate", {}))
    yield from _decode_faults(tables.get("measure", {}).get("decode", {}))
    yield from _engine_faults(tables.get("engine", {}))
    yield from _source_of_examples_faults(inputs)
    if calibration.get("inputs") and calibration.get("caught"):
        yield _fault(("calibration", "caught"), "two-calibrations")
    rows = inputs.get("rows", [])
    named = [(index, row) for index, row in enumerate(rows) if isinstance(row, dict)] if isinstance(rows, list) else []
    yield from _row_faults(named)
    for table, key in (("inputs", "dims"), ("targets", "sizes")):
        yield from _dim_faults((table, key), tables.get(table, {}).get(key, {}), [row for _, row in named])


def _fault(path: KeyPath, name: str, /, **words: object) -> Fault:
    """The fault of that name at a place, with the words filled in."""
    return Fault(path, **{key: text.format_map(words) for key, text in _WORDS[name].items()})


def _engine_faults(engine: Mapping[str, Any]) -> Iterator[Fault]:
    for key in ("python", "files"):
        if engine.get(key) and not engine.get("host"):
            yield _fault(("engine", key), "no-host", key=key)


def _metric_faults(evaluate: Mapping[str, Any]) -> Iterator[Fault]:
    metric, data = evaluate.get("metric"), evaluate.get("data")
    if metric and evaluate.get("function"):
        yield _fault(("evaluate", "metric"), "two-metrics")
    elif metric and not data:
        yield _fault(("evaluate", "metric"), "metric-without-data", metric=metric)
    elif data and not metric:
        yield _fault(("evaluate", "data"), "data-without-metric", known=", ".join(METRIC_NAMES))


def _decode_faults(decode: object) -> Iterator[Fault]:
    if isinstance(decode, dict) and decode and not decode.get("token"):
        yield _fault(("measure", "decode"), "no-token")


def _finetune_faults(finetune: Mapping[str, Any]) -> Iterator[Fault]:
    if finetune.get("method") == "train" and not (finetune.get("loss") and finetune.get("data")):
        yield _fault(("finetune", "method"), "train-without-data")
    elif finetune.get("loss") and not finetune.get("data"):
        yield _fault(("finetune", "loss"), "loss-without-data")


_SOURCES_OF_EXAMPLES = {"tracing": "tracing inputs", "caught": "caught inputs", "rows": "rows"}


def _source_of_examples_faults(inputs: Mapping[str, Any]) -> Iterator[Fault]:
    given = [key for key in _SOURCES_OF_EXAMPLES if inputs.get(key)]
    if len(given) > 1:
        sources = " and ".join(_SOURCES_OF_EXAMPLES[key] for key in given)
        yield _fault(("inputs", given[-1]), "two-sources", sources=sources, keys=", ".join(f"'{key}'" for key in given))


def _source_faults(model: Mapping[str, Any]) -> Iterator[Fault]:
    if model.get("source", "") == "":
        yield _fault(("model", "source") if "source" in model else ("model",), "no-model")


def _row_faults(rows: list[tuple[int, dict[str, Any]]]) -> Iterator[Fault]:
    for index, row in rows:
        path: KeyPath = ("inputs", "rows", index)
        if not row:
            yield _fault(path, "empty-row", place=path_text(path))
        elif set(row) != set(rows[0][1]):
            ours, first = ", ".join(sorted(row)), ", ".join(sorted(rows[0][1])) or "no input"
            yield _fault(path, "other-row", place=path_text(path), ours=ours, first=first)


def _dim_faults(table: KeyPath, dims: object, rows: list[dict[str, Any]]) -> Iterator[Fault]:
    for key in dims if isinstance(dims, dict) else ():
        path: KeyPath = (*table, key)
        parsed = _DIM_KEY.fullmatch(key)
        if parsed is None:
            yield _fault(path, "no-dimension", key=key)
            continue
        name, index = parsed[1], int(parsed[2])
        if not rows or not all(rows):
            continue
        if name not in rows[0]:
            yield _fault(path, "no-input", key=key, name=name, hint=nearest_hint(name, rows[0]))
            continue
        rank = _rank(rows[0][name])
        if rank is not None and index >= rank:
            yield _fault(path, "high-index", key=key, name=name, rank=rank)


def _rank(spec: object) -> int | None:
    shape = spec.get("shape") if isinstance(spec, dict) else None
    return len(shape) if isinstance(shape, list) else None
