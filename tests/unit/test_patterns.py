# SPDX-License-Identifier: Apache-2.0
"""No regular expression of ours is possessive or atomic.

Python 3.11.0 to 3.11.4 match such a group wrongly where it holds a choice (gh-106052): a file with comments was
malformed there, and JSON5 was misread. Debian 12 has 3.11.2.
"""

import ast
import pathlib
import re

import pytest

import halod

PACKAGE = pathlib.Path(halod.__file__).parent

_LITERAL = re.compile(r"\\.|\[\^?\]?(?:[^\]\\]|\\.)*\]", re.DOTALL)
_GREEDY_FOR_GOOD = re.compile(r"[*+?}]\+|\(\?>")


def is_possessive(pattern: str) -> bool:
    """Say whether a regular expression has a possessive quantifier or an atomic group."""
    return _GREEDY_FOR_GOOD.search(_LITERAL.sub("x", pattern)) is not None


def constants(tree: ast.AST) -> list[tuple[int, str]]:
    """Give the texts and bytes of a module with their lines, but not its docstrings."""
    words = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in words:
            if isinstance(node.value, bytes):
                found.append((node.lineno, node.value.decode("latin-1")))
            elif isinstance(node.value, str):
                found.append((node.lineno, node.value))
    return found


@pytest.mark.parametrize(
    "pattern", ["a*+", "a++b", "a?+", "a{2,3}+", "(?>a|b)", r"\]*+x", r"[^\]]++", "[]a]*+"]
)
def test_possessive_patterns_are_told(pattern):
    re.compile(pattern)
    assert is_possessive(pattern)


@pytest.mark.parametrize(
    "pattern", ["a*", "a+b", r"a\++", "[*+]+", r"[\]*+]", "[]*+]", "(?:a+)+", "a+?", "(?=a)"]
)
def test_other_patterns_are_not(pattern):
    re.compile(pattern)
    assert not is_possessive(pattern)


def test_no_pattern_of_the_package_is_possessive():
    """Every text of every module that uses `re` is looked at, so that parts of patterns are too."""
    seen = 0
    faults = []
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_text()
        if "import re\n" not in source:
            continue
        texts = constants(ast.parse(source))
        seen += len(texts)
        faults += [f"{path.name}:{line}" for line, text in texts if is_possessive(text)]
    assert seen > 1000
    assert faults == []
