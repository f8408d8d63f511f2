# SPDX-License-Identifier: Apache-2.0
"""The parts of a watcher (design 3 and 9); `halod.roles.watcher` is the process that they run in.

interest   which names matter in which directory, from the table of locations (pure)
survey     one walk of a home: what must be watched, which candidate files are there
inotify    Linux's events, through watchdog's bindings; nothing else here or elsewhere imports watchdog
remote     which file systems send no events for what others change
frames     what a watcher may say: a kind and a location number
loop       waiting, events, surveys, and how much of a processor they may take
"""
