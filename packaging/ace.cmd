@echo off
rem ACE Studio from a checkout on Windows: packaging\ace [WORD ...], the same words as packaging/ace.
rem   ACE_PYTHON   the interpreter to use instead of searching for one
rem No line stands in a block: a parenthesis in a path or in a word would end it.
setlocal
set "PYTHONHOME="
set "probe=import sys, venv, ensurepip, ssl; sys.exit(not (3, 11) <= sys.version_info < (3, 15))"

if not defined ACE_PYTHON goto :search
rem Quotes that came with the value go; those around it stay, for spaces.
set python="%ACE_PYTHON:"=%"
%python% -I -c "%probe%" >nul 2>&1 && goto :start
echo ace: ACE_PYTHON=%python% does not start, is not Python 3.11 to 3.14, or lacks venv, ensurepip or ssl 1>&2
exit /b 6

:search
for %%V in (3 3.13 3.12 3.11 3.14) do py -%%V -I -c "%probe%" >nul 2>&1 && set "python=py -%%V" && goto :start
set "python=python"
%python% -I -c "%probe%" >nul 2>&1 && goto :start
echo ace: no Python from 3.11 to 3.14 was found 1>&2
echo ace: this installs one:  winget install Python.Python.3.13 1>&2
exit /b 6

:start
%python% -E -s "%~dp0bootstrap.py" %*
exit /b %errorlevel%
