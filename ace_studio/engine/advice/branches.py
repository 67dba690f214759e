"""Finds parallel branches that one convolution could replace: convolutions and norms of one value that are added.

In inference all of them are linear, so that the sum is one convolution with the same outputs.

Source: Ding et al. 2021, arXiv:2101.03697, section 3.3.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator

from ace_studio.records.graph import GraphTable
from ace_studio.records.ops import BATCH_NORMS, CONVOLUTIONS, SUMS, TRANSPOSED_CONVOLUTIONS, operator_name

_PLAIN = CONVOLUTIONS - TRANSPOSED_CONVOLUTIONS
"""Without transposed ones: a transposed and a plain convolution cannot become one."""


def parallel_branches(table: GraphTable) -> list[tuple[str, ...]]:
    """Op ids of the convolutions, norms and sums that one convolution could replace, a tuple for each of these."""
    return list(_Branches(table).groups())


class _Branches:
    def __init__(self, table: GraphTable) -> None:
        self._table = table
        self._kind = [operator_name(op) for op in table.op]
        self._read: dict[int, list[int]] = defaultdict(list)
        for source, target in zip(table.edge_source, table.edge_target, strict=True):
            self._read[target].append(source)
        self._readers = Counter(table.edge_source)

    def groups(self) -> Iterator[tuple[str, ...]]:
        inner: set[int] = set()
        for root in reversed(range(len(self._kind))):  # a sum before the sums that it reads
            if self._kind[root] not in SUMS or root in inner:
                continue
            sums, leaves = self._summed(root)
            inner.update(sums)
            by_source: dict[int, list[list[int]]] = defaultdict(list)
            for leaf in leaves:
                source, rows = self._branch(leaf)
                by_source[source].append(rows)
            for branches in by_source.values():
                rows = [row for branch in branches for row in branch]
                has_convolution = any(self._kind[row] in _PLAIN for row in rows)
                if has_convolution and sum(map(bool, branches)) > 1:
                    saved_sums = sums[: len(branches) - 1]
                    yield tuple(self._table.op_id[row] for row in sorted((*rows, *saved_sums)))

    def _summed(self, root: int) -> tuple[list[int], list[int]]:
        """The sums that make one of more than two values, and these values."""
        sums, leaves = [root], list[int]()
        for one in sums:
            for row in self._read[one]:
                is_part = self._kind[row] in SUMS and self._readers[row] == 1
                (sums if is_part else leaves).append(row)
        return sums, leaves

    def _branch(self, leaf: int) -> tuple[int, list[int]]:
        """The value that a branch reads, and its ops; none for the value itself."""
        rows: list[int] = []
        for kinds in (BATCH_NORMS, _PLAIN):
            if self._kind[leaf] in kinds and self._readers[leaf] == 1 and len(self._read[leaf]) == 1:
                rows.append(leaf)
                leaf = self._read[leaf][0]
        return leaf, rows
