"""Style, type and spacing of the window; the colours are in `colours`. Pixels are logical, before scaling."""

STYLE = "Fusion"
"""Qt's style: the same on every system."""

STRONG = 600
"""Weight of headings and of what stands out in a line; the rest has the desktop's."""
TITLE_PT = 15
NAME_PT = 12
"""The name of the open model."""
SYMBOL_PX = 15
"""Arrows and signs that are buttons."""
LETTER_PX = 10
"""Letters in the swatches of the legend."""

HAIR = 2
"""Between lines of one thing."""
TIGHT = 4
"""Between a name and its field, and between the lines of a card."""
CLOSE = 6
"""Between buttons of one group, and above and below the tools of a panel."""
GAP = 8
"""Between neighbours."""
MARGIN = 12
"""Around the content of a dialog, a form or a card."""
