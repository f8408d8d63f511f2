# SPDX-License-Identifier: Apache-2.0
"""The one door to a user's files (design 3).

Files in a home are hostile input: the account, or anything that runs as it, may swap any of them at any time.
So every byte of a user's file that halod sees comes through `Home`, and these invariants hold:

1. Only names of one component, never `..`, are given to the kernel, each beside the descriptor of a directory
   that was itself opened so (`walk`). The chain begins at one anchor: the home, or a link root.
2. A link in the middle of a path is read and resolved here, from the same anchor; it cannot leave it. A link
   at the end is not followed, but for the link roots an administrator named.
3. What is not a regular file is never opened; an open never blocks and never takes a terminal (`read`).
4. The bytes belong to the file that was judged: the same device and inode before and after the open, the same
   size, mtime and ctime before and after the read.
5. Whatever cannot be read is told: `Refused` for a path, a `Match` with `refused` for a directory (`match`).
   Only what does not exist is silent.
6. Nothing is written, and no error carries a path, a name or a byte of a file.

Directories are kept open for the length of one scan and for its speed: a `Home` is a snapshot of where paths
led when they were first walked, and is made anew for the next scan.
"""

from halod.home.fault import Absent, Refused
from halod.home.home import Home
from halod.home.match import Match
from halod.home.read import File

__all__ = ["Absent", "File", "Home", "Match", "Refused"]
