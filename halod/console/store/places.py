# SPDX-License-Identifier: Apache-2.0
"""By what `group_counts` counts: every combination of harness, ring and unit, so that filters combine exactly.

A combination is kept as a number that is made from its words: four indexes hold it for every thing that is counted, and
nothing has to be looked up. Writer (`delta`) and reader (`read.findings`) both take the numbers from here.
"""

import hashlib
from functools import lru_cache
from itertools import product
from typing import Final


def place(*, harness: str = "", ring: str = "", unit: str = "") -> int:
    """Give the number of a combination; "" stands for any.

    63 bits of a sha256: that two of a million combinations meet has a chance of one in 18 million. Whoever makes two
    meet on purpose has both counted together, and they are made of names that he gave himself.
    """
    words = f"{harness}\0{ring}\0{unit}"  # no stored text holds a control character
    return int.from_bytes(hashlib.sha256(words.encode()).digest()[:8], "big") >> 1


EVERYWHERE: Final = place()
"""The whole fleet."""


@lru_cache(maxsize=2048)  # a fleet says the same few again and again
def places(harness: str, ring: str, units: tuple[str, ...]) -> tuple[int, ...]:
    """Give every place at which a finding counts, each once. An empty harness, ring or unit has none."""
    found = product({"", harness}, {"", ring}, {"", *units})
    return tuple({place(harness=one, ring=two, unit=three) for one, two, three in found})
