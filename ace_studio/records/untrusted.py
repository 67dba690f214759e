"""The problem of code that the user has not trusted."""

from pathlib import Path

from ace_studio.records.errors import ErrorCode, Problem


def untrusted_problem(path: Path, sha256: str, would_run: str) -> Problem:
    """One file that may not run yet; its details hold ``sha256:HASH``, which is what the user trusts."""
    return Problem(
        code=ErrorCode.UNTRUSTED,
        what=f"{path.name} holds code that has not been trusted",
        why=f"opening it would run {would_run}",
        remedy="if you trust its maker, press Trust, or add --trust on the command line",
        where=str(path),
        details=f"sha256:{sha256}",
    )
