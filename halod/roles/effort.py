# SPDX-License-Identifier: Apache-2.0
"""How much text of one home is looked at in full: judging and redacting cost time by the character.

People's definitions are a few hundred characters; a hostile file has a hundred million. Small texts are always
looked at, larger ones while there is room. What is not looked at is never approved and never shown: such a
definition counts as unapproved, such a name is hashed.
"""

from typing import Final

from halod.definition import Definition

SMALL: Final = 1024
"""Characters of a definition or a name that are always looked at."""
LONGEST: Final = 1 << 20
"""Characters of a definition that can be judged; no system starts a command line of more than 2 MiB."""
DEFINITIONS: Final = 4 << 20
"""Characters of all larger definitions of one home."""
NAMES: Final = 1 << 20
"""Characters of all larger names of one home."""
_WORD: Final = 16  # characters that a word costs beside its own


class Effort:
    """What is left for one home."""

    __slots__ = ("_definitions", "_names")

    def __init__(self) -> None:
        self._definitions = DEFINITIONS
        self._names = NAMES

    def definition(self, definition: Definition) -> bool:
        """Say whether a definition may be looked at, and note that it was."""
        cost = _cost(definition)
        if cost <= SMALL:
            return True
        if cost > min(LONGEST, self._definitions):
            return False
        self._definitions -= cost
        return True

    def name(self, name: str) -> bool:
        """Say whether a name may be looked at, and note that it was."""
        if len(name) <= SMALL:
            return True
        if len(name) > self._names:
            return False
        self._names -= len(name)
        return True


def _cost(definition: Definition) -> int:
    words = len(definition.args) + 2 * len(definition.env)
    if words * _WORD > LONGEST:
        return LONGEST + 1
    text = sum(map(len, definition.args)) + sum([len(key) + len(value) for key, value in definition.env])
    return len(definition.command) + len(definition.url) + len(definition.cwd) + words * _WORD + text
