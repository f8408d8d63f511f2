# SPDX-License-Identifier: Apache-2.0
"""Requirements as uv and pipx take them (launchers.md 4, 5): PEP 508, `name@version`, URLs and paths."""

import re

from halod.launch.draft import Draft
from halod.launch.versions import pypi_name, pypi_version
from halod.launch.words import MAX_OPERAND, has_variable, listed

_NAMED = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)[ \t]*(?P<extras>\[[A-Za-z0-9._, \t-]*\])?[ \t]*(?P<rest>.*)",
    re.DOTALL,
)
_CLAUSE = re.compile(r"(===|==|~=|!=|<=|>=|<|>)[ \t]*([A-Za-z0-9._*+!-]+)")
_ARCHIVE = re.compile(r"\.(?:whl|tar\.gz|tgz|zip|tar\.bz2|tar\.xz)(?:[#?].*)?$", re.IGNORECASE | re.DOTALL)
_COMMIT = re.compile(r"[0-9a-f]{40}")
_PYTHON = re.compile(
    r"(?:python|pythonw|pypy|cpython|graalpy|graalpython|pyodide|jython|ipython)[0-9.]*[tdw]?", re.IGNORECASE
)

# Programs of packages that only run what their arguments name (launchers.md 9).
INTERPRETERS = listed(
    """mcp fastmcp uv uvx pip pipx ipython jupyter poetry pdm hatch tox nox invoke gunicorn uvicorn hypercorn
    honcho supervisor xonsh ptpython bpython pytest coverage virtualenv cython nuitka pyinstaller"""
)
SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ash", "ksh", "fish", "cmd", "powershell", "pwsh", "env"})


def is_python(program: str) -> bool:
    """Tell whether a program name is a Python interpreter, with or without a version."""
    return _PYTHON.fullmatch(program.removesuffix(".exe")) is not None


def read_pypi(text: str, draft: Draft, *, at_version: bool) -> str:
    """Read a requirement into `draft`; give the name as spelled, or "" when it names no package.

    `at_version` says whether `name@1.2` is a version (uvx) or a mistake (pipx, `uv run --with`).
    """
    draft.ecosystem = "pypi"
    if has_variable(text):
        draft.kill("unresolved-variable", ecosystem="unknown")
        return ""
    # A blank in front, or before the `@`, makes uv read `name@1.2` as PEP 508: a path named 1.2.
    led, text = text[:1] in {" ", "\t"}, text.strip(" \t")
    if not text or len(text) > MAX_OPERAND or "\0" in text:
        draft.kill("launch-error")
        return ""
    match = _NAMED.fullmatch(text)
    if _is_source(text) or match is None:
        _read_source(text, draft)
        return ""
    name, rest = match["name"], match["rest"]
    identifier = pypi_name(name)
    if identifier is None:
        draft.kill("launch-error")
        return ""
    if match["extras"]:
        draft.flags.add("extras")
    if rest.startswith("@"):
        at = match.end("extras") if match["extras"] else match.end("name")
        tight = not led and text[at] == "@" and text[match.end("name")] in "@["
        _read_at(rest[1:], identifier, draft, at_version=at_version and tight)
    else:
        draft.identifier = identifier
        _read_specifier(rest, draft)
    return name


def _is_source(text: str) -> bool:
    head = text.partition("@")[0] if "@" in text else text
    return (
        text[0] in "./\\~"
        or "://" in head
        or text.lower().startswith(("git+", "hg+", "svn+", "bzr+", "file:"))
        or "/" in head
        or "\\" in head
        or ("@" not in text and _ARCHIVE.search(text) is not None)
    )


def _read_at(selector: str, identifier: str, draft: Draft, *, at_version: bool) -> None:
    # What uv does not take for a version is a path: nothing is trimmed or folded here.
    version = pypi_version(selector) if selector == selector.lower() else None
    if at_version and version is not None:
        draft.identifier, draft.version = identifier, version
        draft.requested = None if version == selector else selector
    elif at_version and selector == "latest":
        draft.identifier, draft.requested = identifier, selector
    elif "/" in selector:
        draft.flags.add("name-is-label")
        _read_source(selector.strip(" \t"), draft)
    else:
        draft.identifier = identifier
        draft.kill("local-path")


def _read_specifier(rest: str, draft: Draft) -> None:
    specifier, semicolon, _marker = rest.partition(";")
    specifier = specifier.strip(" \t")
    if semicolon:
        draft.flags.add("marker")
    if specifier.startswith("(") and specifier.endswith(")"):
        specifier = specifier[1:-1].strip(" \t")
    if not specifier:
        return
    clauses = specifier.removesuffix(",").split(",")
    if not all(_CLAUSE.fullmatch(clause.strip(" \t")) for clause in clauses):
        draft.kill("launch-error")
        return
    clause = _CLAUSE.fullmatch(specifier)
    version = pypi_version(clause[2]) if clause is not None and clause[1] in {"==", "==="} else None
    if version is not None and clause is not None:
        draft.version = version
        draft.requested = None if version == clause[2] else clause[2]
    else:
        draft.requested = specifier


def _read_source(text: str, draft: Draft) -> None:
    """Read what is no name: a repository, an archive at a URL, or something on this disk."""
    lower = text.lower()
    if lower.startswith(("git+", "hg+", "svn+", "bzr+")):
        base = text.partition("#")[0]
        at = base.rfind("@")
        if at > base.rfind("/"):
            base, ref = base[:at], base[at + 1 :]
            draft.version = ref if _COMMIT.fullmatch(ref) else None
            draft.requested = None if draft.version else ref
        draft.ecosystem, draft.identifier = "git", base
        draft.flags.add("vcs-source")
    elif lower.startswith(("http://", "https://")):
        draft.ecosystem, draft.identifier = "wheel-url", text
        draft.flags.add("url-source")
    else:
        draft.kill("local-path", ecosystem="local")
