# SPDX-License-Identifier: Apache-2.0
"""halo-server, the console: takes the reports of a fleet, keeps them, shows them.

Of halod it imports `status` and `policy` (and `errors`, `logline`), nothing else; the agent imports nothing of it. Its
libraries are the extra `halod[console]`, so a laptop installs neither a web framework nor a database driver.

Rooms, each knows only those before it: `clock settings` -> `store` -> `security` -> `ingest policy hooks` ->
`api pages` -> `app` -> `cli`.
"""
