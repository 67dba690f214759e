"""Sensitivity of the ops: how much noise each adds to the outputs at a low precision, from a few passes."""

from ace_studio.engine.sensitivity.local_error import SIMULATED
from ace_studio.engine.sensitivity.scan import Noise, Scan, ScanRequest, noise_db
