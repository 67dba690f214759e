@echo off
rem ACE Studio from a checkout on Windows: packaging\ace [WORD ...], the same words as packaging/ace.
rem   ACE_PYTHON   the interpreter to use instead of searching for one
setlocal
set "PYTHONHOME="
set "probe=import sys, venv, ensurepip, ssl; sys.exit(not (3, 11) <= sys.version_info < (3, 15))"

if defined ACE_PYTHON (
    "%ACE_PYTHON%" -I -c "%probe%" >nul 2>&1 && (
        "%ACE_PYTHON%" -E -s "%~dp0bootstrap.py" %*
        goto :end
    )
    echo ace: ACE_PYTHON=%ACE_PYTHON% does not start, is older than Python 3.11, or lacks venv, ensurepip or ssl 1>&2
    exit /b 6
)
for %%V in (3 3.13 3.12 3.11 3.14) do (
    py -%%V -I -c "%probe%" >nul 2>&1 && (
        py -%%V -E -s "%~dp0bootstrap.py" %*
        goto :end
    )
)
python -I -c "%probe%" >nul 2>&1 && (
    python -E -s "%~dp0bootstrap.py" %*
    goto :end
)
echo ace: no Python from 3.11 to 3.14 was found 1>&2
echo ace: this installs one:  winget install Python.Python.3.13 1>&2
exit /b 6

:end
exit /b %errorlevel%
