# SPDX-License-Identifier: Apache-2.0
"""What a definition launches: a command line to the package it runs, a URL to what can be compared.

Pure functions, no I/O and no state. The one property that may never break: no package or URL pin approves a
definition that can make the launcher run something else than the pinned thing. When in doubt, not approved.
"""

from halod.launch.identify import identify
from halod.launch.model import Launch, Nested, UrlParts
from halod.launch.urls import canonical_url, parse_url, whatwg_host

__all__ = ["Launch", "Nested", "UrlParts", "canonical_url", "identify", "parse_url", "whatwg_host"]
