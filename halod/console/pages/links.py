# SPDX-License-Identifier: Apache-2.0
"""Addresses of the pages: made in one place, so that what a device named is always percent-encoded."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlencode

from halod.console.call import Call

_LONGEST: Final = 512


def query(call: Call, *names: str) -> dict[str, str]:
    """Give the named parameters of the address as text, "" for what is not there; of two the last counts."""
    given = call.request.query_params
    return {name: given.get(name, "").strip()[:_LONGEST] for name in names}


def link(path: str, parameters: Mapping[str, str] | None = None, **changes: str) -> str:
    """Give `path` with the parameters, changed; empty ones are left out."""
    merged = {**(parameters or {}), **changes}
    text = urlencode([(name, value) for name, value in merged.items() if value])
    return f"{path}?{text}" if text else path


def device(identity: str) -> str:
    """Give the address of a device's page."""
    return f"/devices/{quote(identity, safe='')}"


def enrolment(identity: str) -> str:
    """Give the address under which a device that waits is accepted and refused."""
    return f"/enrolments/{quote(identity, safe='')}"


def entry(name: str) -> str:
    """Give the address of a registry entry's page."""
    return f"/registry/{quote(name, safe='')}"
