# SPDX-License-Identifier: Apache-2.0
"""A server.json as strict JSON, of bounded size; what is wrong with one is said as a refusal of the import."""

from typing import Final

from halod.policy.importing.model import ImportRefused
from halod.policy.strictjson import NotStrictError, decode
from halod.policy.yamlpos import shown

MAX_BYTES: Final = 1024 * 1024
"""A server.json is a few KiB; the registry takes none near this."""


def parse(data: bytes) -> object:
    """Decode one strict JSON text.

    Raises:
        ImportRefused: it is larger than MAX_BYTES, not UTF-8, not JSON, nested too deep, or has a key twice.
    """
    if len(data) > MAX_BYTES:
        raise ImportRefused("the document is larger than 1 MiB; this is no server.json")
    try:
        return decode(data)
    except NotStrictError as error:
        fault = error.fault if error.key is None else f"has the key {shown(error.key)} twice"
    raise ImportRefused(f"the document {fault}")
