"""The int8 styles of `quantize.simulate` by the names that the rows of targets have for them."""

from collections.abc import Iterable

from ace_studio.engine.quantize.simulate import NNCF, PAIRS, READS, RESULTS, Int8Style
from ace_studio.records.targets import RoundingStyle

STYLES = {
    RoundingStyle.NNCF: NNCF,
    RoundingStyle.READS: READS,
    RoundingStyle.RESULTS: RESULTS,
    RoundingStyle.PAIRS: PAIRS,
}
"""From the style that rounds least to the one that rounds most."""


def most_rounding(styles: Iterable[Int8Style]) -> Int8Style:
    """The style that rounds most, for what is computed once for several targets; `READS` without any."""
    return max(styles, key=list(STYLES.values()).index, default=READS)
