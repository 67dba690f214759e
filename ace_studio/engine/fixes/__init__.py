"""Proposes fixes for places where capture stops; the pipeline tries them."""

from ace_studio.engine.fixes.branches import CannotRewriteError
from ace_studio.engine.fixes.constants import HOOK, noting
from ace_studio.engine.fixes.source_text import SourceText, unified_diff
from ace_studio.engine.fixes.spots import Spot
from ace_studio.engine.fixes.table import FIX_ROWS, ProposedFix, proposed_fixes
from ace_studio.engine.fixes.varied import varied
