# SPDX-License-Identifier: Apache-2.0
"""Where each AI tool keeps its servers, and the reader of a home (design 4).

`table` is data: adding a harness whose dialect is known is one entry in a `table_*` module and one fixture.
`reader` walks a home by it. `entries` makes a definition of an entry; it, `tables`, `features` and `shapes`
are pure. A module with a harness's name holds what a table cannot say about it.

The names below are imported when they are first asked for: who needs a type does not pay for parsers.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from halod.harnesses.dialect import Harness, Location
    from halod.harnesses.reader import read_home
    from halod.harnesses.table import HARNESS_IDS, HARNESSES, LOCATIONS, display, extra_location

__all__ = [
    "HARNESSES",
    "HARNESS_IDS",
    "LOCATIONS",
    "Harness",
    "Location",
    "display",
    "extra_location",
    "read_home",
]

_HOMES = {"Harness": "dialect", "Location": "dialect", "read_home": "reader"}


def __getattr__(name: str) -> object:
    """Import a public name from the module that has it."""
    if name not in __all__:
        raise AttributeError(name)
    value = getattr(import_module(f"halod.harnesses.{_HOMES.get(name, 'table')}"), name)
    globals()[name] = value
    return value
