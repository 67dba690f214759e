"""The tree of blocks while it grows: planted from module paths, then tidied."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ace_studio.records.graph import GraphTable
from ace_studio.records.results import SubgraphReport

MAX_DEPTH = 48
"""Deeper parts of a module path stay in the block at this depth; real models reach about 12."""

CONTAINERS = frozenset({"", "ModuleList", "ModuleDict"})
"""Classes without a forward of their own."""

NAME_GAP = " · "
"""Between the name of a subgraph and that of the module it is."""


@dataclass
class BlockTree:
    """The tree while it is still being cut and merged; block 0 is the root, children are rows or ``-1 - block``."""

    names: list[str] = field(default_factory=lambda: [""])
    paths: list[str] = field(default_factory=lambda: [""])
    types: list[str] = field(default_factory=lambda: [""])
    repeats: list[int] = field(default_factory=lambda: [0])
    subgraphs: list[int] = field(default_factory=lambda: [-1])
    children: list[list[int]] = field(default_factory=lambda: [[]])
    is_segment: list[bool] = field(default_factory=lambda: [False])

    def add(self, *, name: str, path: str, module_type: str, repeats: int = 0, subgraph: int = -1) -> int:
        """Add an empty block; returns its number."""
        self.names.append(name)
        self.paths.append(path)
        self.types.append(module_type)
        self.repeats.append(repeats)
        self.subgraphs.append(subgraph)
        self.children.append([])
        self.is_segment.append(False)
        return len(self.names) - 1


def plant(table: GraphTable, subgraphs: Sequence[SubgraphReport]) -> BlockTree:
    """Blocks for every subgraph and every prefix of every module path, each with its content in order of first row."""
    tree = BlockTree()
    tree.types[0] = tree.names[0] = table.name
    types = dict(zip(table.module_paths, table.module_types, strict=False))
    by_path: dict[tuple[int, str], int] = {(-1, ""): 0}

    def block_of(subgraph: int, path: str) -> int:
        block = by_path.get((subgraph, path))
        if block is not None:
            return block
        parts = path.split(".")
        if not path:
            about = subgraphs[subgraph] if subgraph < len(subgraphs) else None
            name = about.name if about else f"p{subgraph}"
            module = about.module if about else ""
            title = f"{name}{NAME_GAP}{module}" if module else name
            block = tree.add(name=title, path=name, module_type=types.get(module, ""), subgraph=subgraph)
            tree.children[0].append(-1 - block)
        elif len(parts) > MAX_DEPTH:
            block = block_of(subgraph, ".".join(parts[:MAX_DEPTH]))
        else:
            parent = block_of(subgraph, ".".join(parts[:-1]))
            block = tree.add(name=parts[-1], path=path, module_type=types.get(path, ""))
            tree.children[parent].append(-1 - block)
        by_path[subgraph, path] = block
        return block

    for row, path in enumerate(table.module):
        subgraph = table.piece[row] if table.piece else -1
        # In a partial capture, rows without a subgraph lie between the subgraphs.
        is_between = bool(table.piece) and subgraph < 0
        tree.children[block_of(subgraph, "" if is_between else path)].append(row)
    return tree


def preorder(tree: BlockTree) -> list[int]:
    """Blocks reachable from the root, parents before children."""
    order, waiting = [], [0]
    while waiting:
        block = waiting.pop()
        order.append(block)
        waiting.extend(-1 - child for child in reversed(tree.children[block]) if child < 0)
    return order


def dissolve_scattered(tree: BlockTree) -> None:
    """Put the content of pure containers whose parts run at different times into what contains them.

    The stages of a U-Net sit in two lists; drawn as two blocks they would be a tangle of cycles.
    """
    spans: dict[int, tuple[int, int, int]] = {}
    for block in reversed(preorder(tree)):
        for at in range(len(tree.children[block]) - 1, -1, -1):
            child = tree.children[block][at]
            if child >= 0 or tree.types[-1 - child] not in CONTAINERS or tree.subgraphs[-1 - child] >= 0:
                continue
            first, last, count = spans[-1 - child]
            if count != last - first + 1:
                inner = tree.children[-1 - child]
                for node in inner:
                    if node < 0:
                        tree.names[-1 - node] = f"{tree.names[-1 - child]}.{tree.names[-1 - node]}"
                tree.children[block][at : at + 1] = inner
        parts = [(child, child, 1) if child >= 0 else spans[-1 - child] for child in tree.children[block]]
        order = sorted(range(len(parts)), key=lambda at: parts[at][0])
        tree.children[block] = [tree.children[block][at] for at in order]
        if parts:
            spans[block] = (min(p[0] for p in parts), max(p[1] for p in parts), sum(p[2] for p in parts))


def tidy_children(tree: BlockTree, block: int, row_names: list[str]) -> None:
    """Replace blocks of one row by the row and merge blocks whose only content is another block."""
    for at, child in enumerate(tree.children[block]):
        if child >= 0:
            continue
        inner = tree.children[-1 - child]
        if tree.subgraphs[-1 - child] >= 0:
            _name_after_content(tree, -1 - child)
            continue
        if len(inner) != 1:
            continue
        name = tree.names[-1 - child]
        tree.children[block][at] = only = inner[0]
        if only >= 0:
            row_names[only] = f"{name}.{row_names[only]}" if row_names[only] else name
        else:
            tree.names[-1 - only] = f"{name}.{tree.names[-1 - only]}"


def _name_after_content(tree: BlockTree, subgraph: int) -> None:
    """A subgraph whose only content is a module takes its content, and its name if it has none of its own.

    It stays a block of its own.
    """
    inner = tree.children[subgraph]
    if len(inner) == 1 and inner[0] < 0:
        only = -1 - inner[0]
        if NAME_GAP not in tree.names[subgraph]:
            tree.names[subgraph] = f"{tree.names[subgraph]}{NAME_GAP}{tree.names[only]}"
        tree.types[subgraph] = tree.types[only]
        tree.children[subgraph] = tree.children[only]
