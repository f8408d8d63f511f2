# SPDX-License-Identifier: Apache-2.0
"""`pipx run` (launchers.md 5). Interpreters started directly are local code and need no reader."""

from halod.launch.draft import Draft
from halod.launch.pypispec import INTERPRETERS, is_python, read_pypi
from halod.launch.runners import is_runner
from halod.launch.words import Words, has_variable, split_option

_VALUE_FLAGS = {
    "--python": "interpreter",
    "--python-args": "code-injection",
    "--with": "extra-packages",
    "--index-url": "registry-override",
    "-i": "registry-override",
    "--pip-args": "config-override",
    "--fetch-python": "config-override",
    "--cooldown": "version-override",
    "--backend": "config-override",
}


def pipx(args: tuple[str, ...], draft: Draft) -> None:
    """Read `pipx run APP` and `pipx run --spec X APP`; a file of APP's name in the cwd would run instead."""
    draft.ecosystem = "pypi"
    draft.local_copies()
    words = Words(args)
    if words.next() != "run":
        draft.kill("launch-error")
        return
    spec: str | None = None
    while (word := words.next()) is not None and word.startswith("-"):
        name, attached = split_option(word)
        if name == "--spec":
            spec = words.value(attached) or ""
        else:
            _option(name, attached, words, draft)
    draft.args = words.rest()
    if word is None:
        draft.kill("launch-error")
    elif spec is not None:
        draft.bin = word
        draft.flags.add("from-flag")
        read_pypi(spec, draft, at_version=False)
        if has_variable(word) or is_python(word) or is_runner(word) or draft.identifier in INTERPRETERS:
            draft.kill("interpreter")
    elif word.startswith(("http://", "https://")):
        draft.kill("remote-script", ecosystem="url-script")
    else:
        read_pypi(word, draft, at_version=False)
        if draft.identifier in INTERPRETERS:
            draft.kill("interpreter-package")


def _option(name: str, attached: str | None, words: Words, draft: Draft) -> None:
    """No option of pipx run is harmless."""
    flag = _VALUE_FLAGS.get(name, "unknown-option")
    value = words.value(attached) if name in _VALUE_FLAGS else None
    if flag == "registry-override":
        draft.registry(value)
    else:
        draft.flags.add(flag)
