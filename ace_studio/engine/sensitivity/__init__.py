"""How much each op, computed at a low precision, disturbs what the model gives; found in a handful of passes."""

from __future__ import annotations

from ace_studio.engine.sensitivity.local_error import SIMULATED
from ace_studio.engine.sensitivity.saved import SavedScan, read_scan, scan_key, write_scan
from ace_studio.engine.sensitivity.scan import Noise, Scan, ScanRequest, noise_db

__all__ = ["SIMULATED", "Noise", "SavedScan", "Scan", "ScanRequest", "noise_db", "read_scan", "scan_key", "write_scan"]
