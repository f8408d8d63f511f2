# SPDX-License-Identifier: Apache-2.0
"""By what `group_counts` counts: every combination of harness, ring and unit, so that filters combine exactly.

Writer (`delta`) and reader (`read.findings`) both take the keys from here.
"""

from functools import lru_cache
from itertools import product
from typing import Final

SEPARATOR: Final = "\x1f"
"""Between the parts of a combined value: no stored text holds a control character."""


_PARTS: Final = ("harness", "ring", "unit")
_DIMS: Final = {
    given: "+".join(part for part, there in zip(_PARTS, given, strict=True) if there)
    for given in product((False, True), repeat=len(_PARTS))
}


def key(*, harness: str = "", ring: str = "", unit: str = "") -> tuple[str, str]:
    """Give (dim, value) of the combination of what is not "": ("", ""), ("harness", "codex"), ("harness+ring", …)."""
    dim = _DIMS[harness != "", ring != "", unit != ""]
    return dim, SEPARATOR.join(filter(None, (harness, ring, unit)))


@lru_cache(maxsize=2048)  # a fleet says the same few again and again; 36 texts of one at most
def keys(harness: str, ring: str, units: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Give every (dim, value) under which a finding counts, each once. An empty harness, ring or unit has none."""
    found = product(dict.fromkeys(("", harness)), dict.fromkeys(("", ring)), dict.fromkeys(("", *units)))
    return tuple(key(harness=one, ring=two, unit=three) for one, two, three in found)
