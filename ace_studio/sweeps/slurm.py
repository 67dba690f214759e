"""Workers that SLURM starts: ``--scheduler slurm:8`` asks for eight, each a SLURM job, by dask-jobqueue.

What such a job is (queue, cores, memory, time, GPU) stands in Dask's configuration, ``jobqueue.slurm``.
"""

import importlib.util
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import dask
from distributed.security import Security

from ace_studio.records.errors import AceError, ErrorCode, message_of
from ace_studio.records.safe_file import write_atomically
from ace_studio.sweeps.cluster import GPU, TIMING, scheduler_settings

PREFIX = "slurm:"
_SETTINGS = "jobqueue.slurm"
_INSTALL = "pip install 'ace-studio[slurm]'"


def slurm_workers(address: str) -> int:
    """How many workers ``slurm:8`` asks for; 0 if it is another address. Raises: AceError(USAGE) without a number."""
    if not address.startswith(PREFIX):
        return 0
    count = address.removeprefix(PREFIX)
    if not count.isdecimal() or not int(count):
        raise AceError.of(ErrorCode.USAGE, f"{address} does not say how many workers", remedy="write slurm:8")
    return int(count)


@contextmanager
def slurm_cluster(count: int, shared: Path) -> Iterator[Any]:
    """A scheduler in this process, and ``count`` workers that SLURM starts as it has room, until the block ends.

    The connections are encrypted with a key that lies in a folder below ``shared`` for that long, which only this user
    can read; SLURM's nodes have to see it.

    Raises: AceError(NOT_INSTALLED) without dask-jobqueue; AceError(USAGE) if Dask's configuration lacks something.
    """
    if importlib.util.find_spec("dask_jobqueue") is None:
        raise AceError.of(ErrorCode.NOT_INSTALLED, "SLURM needs dask-jobqueue", remedy=_INSTALL)
    import dask_jobqueue  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415 - optional

    python = dask.config.get(f"{_SETTINGS}.python", None) or sys.executable
    directives = " ".join(map(str, dask.config.get(f"{_SETTINGS}.job_extra_directives", None) or ()))
    resources = f"{TIMING}=1" + (f" {GPU}=1" if "gpu" in directives.lower() else "")
    with ExitStack() as opened:
        opened.enter_context(dask.config.set(scheduler_settings()))
        folder = opened.enter_context(tempfile.TemporaryDirectory(prefix=".dask-", dir=shared))
        try:
            cluster: Any = opened.enter_context(
                dask_jobqueue.SLURMCluster(
                    n_workers=count,
                    python=f"{python} -P",  # not from the folder that SLURM starts it in, which may be a stranger's
                    processes=1,
                    worker_extra_args=["--nthreads", "1", "--resources", f'"{resources}"'],
                    security=_security(Path(folder)),
                    scheduler_options={"dashboard_address": "127.0.0.1:0"},
                )
            )
        except (ValueError, TypeError, RuntimeError) as error:
            raise AceError.of(
                ErrorCode.USAGE,
                "SLURM cannot be asked for workers",
                why=message_of(error),
                remedy=f"Set queue, cores, memory and walltime in Dask's configuration, {_SETTINGS}",
            ) from error
        yield cluster


def _security(folder: Path) -> Security | None:
    """A key and a certificate of this sweep's own, in files; None where nothing can make them."""
    if importlib.util.find_spec("cryptography") is None:
        return None
    made = Security.temporary()  # type: ignore[no-untyped-call]
    paths = {}
    for name, content in (("ca", made.tls_ca_file), ("cert", made.tls_client_cert), ("key", made.tls_client_key)):
        paths[name] = str(folder / f"{name}.pem")
        write_atomically(Path(paths[name]), content.encode(), mode=0o600)
    roles = {
        f"tls_{role}_{part}": paths[part] for role in ("client", "scheduler", "worker") for part in ("cert", "key")
    }
    return Security(require_encryption=True, tls_ca_file=paths["ca"], **roles)  # type: ignore[no-untyped-call]
