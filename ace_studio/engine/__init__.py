"""Work: everything that needs torch. No Qt. Runs in the worker process, the command line or a notebook only.

Stages do not import each other; `pipeline` knows their order. What flows between them is in `flow`.
"""

import os

# Read by libraries when they are imported, here and in the processes that are started from here: ONNX Runtime would
# look up its maker's server and store a device id in the home folder.
for _name in ("ORT_DISABLE_TELEMETRY", "HF_HUB_DISABLE_TELEMETRY", "DO_NOT_TRACK"):
    os.environ[_name] = "1"
