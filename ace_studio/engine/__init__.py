"""Work: everything that needs torch. No Qt. Runs in the worker process, the command line or a notebook only.

Stages do not import each other; `pipeline` knows their order. What flows between them is in `flow`.
"""
