# SPDX-License-Identifier: Apache-2.0
"""The pages for people: server-rendered, without a script except for the box that computes hashes.

`render` and `error_page` are what other rooms use; `ROUTES` are the addresses.
"""

from typing import Final

from halod.console.pages import assets, credentials, devices, findings, operate, overview, people, registry
from halod.console.pages.render import error_page, render

__all__ = ("ROUTES", "error_page", "render")

ROUTES: Final = (
    *overview.ROUTES,
    *findings.ROUTES,
    *devices.ROUTES,
    *registry.ROUTES,
    *operate.ROUTES,
    *credentials.ROUTES,
    *people.ROUTES,
    *assets.ROUTES,
)
