# SPDX-License-Identifier: Apache-2.0
"""By what `group_counts` counts: every combination of harness, ring and unit, so that filters combine exactly.

Writer (`delta`) and reader (`read.findings`) both take the keys from here.
"""

from collections.abc import Iterable, Iterator
from typing import Final

SEPARATOR: Final = "\x1f"
"""Between the parts of a combined value: no stored text holds a control character."""


def key(*, harness: str = "", ring: str = "", unit: str = "") -> tuple[str, str]:
    """Give (dim, value) of the combination of what is not "": ("", ""), ("harness", "codex"), ("harness+ring", …)."""
    parts = {"harness": harness, "ring": ring, "unit": unit}
    given = {name: value for name, value in parts.items() if value}
    return "+".join(given), SEPARATOR.join(given.values())


def keys(harness: str, ring: str, units: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Give every (dim, value) under which a finding counts, each once. An empty harness, ring or unit has none."""
    found = {
        key(harness=one, ring=two, unit=three): None
        for one in ("", harness)
        for two in ("", ring)
        for three in ("", *units)
    }
    yield from found
