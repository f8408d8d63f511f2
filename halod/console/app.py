# SPDX-License-Identifier: Apache-2.0
"""The ASGI application: the route table behind the gate."""

from halod.console.access import Route

ROUTES: tuple[Route, ...] = ()
"""Every address of the console: the tables of api, ingest, pages, policy and security, in one."""
