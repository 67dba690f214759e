"""What must fit together in a recipe: values that need another one, exclude it, or have to match it."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ace_studio.records.recipes.fault import Fault, nearest_hint, path_text
from ace_studio.records.recipes.recipe import METRIC_NAMES
from ace_studio.records.recipes.toml_lines import KeyPath

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
        yield Fault(
            ("calibration", "caught"),
            "[calibration] has both a function and caught inputs",
            why="only one of them can say what to calibrate with",
            remedy="remove 'inputs' or 'caught'",
        )
    rows = inputs.get("rows", [])
    named = [(index, row) for index, row in enumerate(rows) if isinstance(row, dict)] if isinstance(rows, list) else []
    yield from _row_faults(named)
    for table, key in (("inputs", "dims"), ("targets", "sizes")):
        yield from _dim_faults((table, key), tables.get(table, {}).get(key, {}), [row for _, row in named])


def _engine_faults(engine: Mapping[str, Any]) -> Iterator[Fault]:
    for key in ("python", "files"):
        if engine.get(key) and not engine.get("host"):
            yield Fault(
                ("engine", key),
                f"[engine] has '{key}', but no host",
                why="a recipe chooses the engine on another machine only; the one here is a setting of this user",
                remedy="add host, or remove it",
            )


def _metric_faults(evaluate: Mapping[str, Any]) -> Iterator[Fault]:
    metric, data = evaluate.get("metric"), evaluate.get("data")
    if metric and evaluate.get("function"):
        yield Fault(
            ("evaluate", "metric"),
            "[evaluate] has both a function and a metric",
            why="only one of them can say how good a model is",
            remedy="remove 'function' or 'metric'",
        )
    elif metric and not data:
        yield Fault(
            ("evaluate", "metric"),
            f"[evaluate] metric = '{metric}' has no data",
            why="a metric compares outputs with labels",
            remedy="add data: a function that gives (inputs, labels), or a file with the inputs and 'labels'",
        )
    elif data and not metric:
        yield Fault(
            ("evaluate", "data"),
            "[evaluate] has data, but no metric",
            why="without a metric the data are not used",
            remedy="add metric: one of " + ", ".join(METRIC_NAMES),
        )


def _decode_faults(decode: object) -> Iterator[Fault]:
    if isinstance(decode, dict) and decode and not decode.get("token"):
        yield Fault(
            ("measure", "decode"),
            "[measure] decode does not say which input takes the token",
            why="every step feeds the last token and the cache back",
            remedy='write for example decode = { token = "token", feed = { cache = "1" } }',
        )


def _finetune_faults(finetune: Mapping[str, Any]) -> Iterator[Fault]:
    if finetune.get("method") == "train" and not (finetune.get("loss") and finetune.get("data")):
        yield Fault(
            ("finetune", "method"),
            "[finetune] method = 'train' needs both a loss and data",
            why="it trains on pairs of input and label with your loss",
            remedy='name both functions, or take method = "distill", which needs neither',
        )
    elif finetune.get("loss") and not finetune.get("data"):
        yield Fault(
            ("finetune", "loss"),
            "[finetune] has a loss, but no data",
            why="a loss compares outputs with labels, and calibration data have none",
            remedy="add data: a function that gives (input, label) pairs",
        )


_SOURCES_OF_EXAMPLES = {"tracing": "tracing inputs", "caught": "caught inputs", "rows": "rows"}


def _source_of_examples_faults(inputs: Mapping[str, Any]) -> Iterator[Fault]:
    given = [key for key in _SOURCES_OF_EXAMPLES if inputs.get(key)]
    if len(given) > 1:
        yield Fault(
            ("inputs", given[-1]),
            "[inputs] has both " + " and ".join(_SOURCES_OF_EXAMPLES[key] for key in given),
            why="only one of them can say what to trace with",
            remedy="keep one of " + ", ".join(f"'{key}'" for key in given),
        )


def _source_faults(model: Mapping[str, Any]) -> Iterator[Fault]:
    if model.get("source", "") == "":
        yield Fault(
            ("model", "source") if "source" in model else ("model",),
            "The recipe names no model",
            why="[model] source is missing or empty",
            remedy='write [model] and below it source = "model.py", a path relative to the recipe',
        )


def _row_faults(rows: list[tuple[int, dict[str, Any]]]) -> Iterator[Fault]:
    for index, row in rows:
        path: KeyPath = ("inputs", "rows", index)
        if not row:
            yield Fault(path, f"{path_text(path)} is empty", remedy="give every input a shape, or remove the row")
        elif set(row) != set(rows[0][1]):
            ours, first = ", ".join(sorted(row)), ", ".join(sorted(rows[0][1])) or "no input"
            yield Fault(
                path,
                f"{path_text(path)} gives {ours}, but the first row gives {first}",
                why="every row is one call of the same model",
                remedy="give the same inputs in every row",
            )


def _dim_faults(table: KeyPath, dims: object, rows: list[dict[str, Any]]) -> Iterator[Fault]:
    for key in dims if isinstance(dims, dict) else ():
        path: KeyPath = (*table, key)
        parsed = _DIM_KEY.fullmatch(key)
        if parsed is None:
            yield Fault(path, f"'{key}' does not name a dimension", remedy='write "NAME.INDEX", for example "x.0"')
            continue
        name, index = parsed[1], int(parsed[2])
        if not rows or not all(rows):
            continue
        if name not in rows[0]:
            yield Fault(path, f"'{key}': no row gives an input '{name}'", remedy=nearest_hint(name, rows[0]))
            continue
        rank = _rank(rows[0][name])
        if rank is not None and index >= rank:
            yield Fault(path, f"'{key}': '{name}' has {rank} dimensions, counted from 0", remedy="give a smaller index")


def _rank(spec: object) -> int | None:
    shape = spec.get("shape") if isinstance(spec, dict) else None
    return len(shape) if isinstance(shape, list) else None
