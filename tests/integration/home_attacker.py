# SPDX-License-Identifier: Apache-2.0
"""The other process of test_home_race: swaps one thing in a home as fast as it can.

    home_attacker.py ATTACK TOP SWAPS

TOP holds `home/` and `outside/`. It writes one byte to stdout when it begins and one when it has swapped SWAPS
times, and goes on until its stdin ends. Each attack is one round trip from good to bad and back.
"""

import os
import select
import sys
from pathlib import Path

TOP = Path(sys.argv[2])
HOME, OUTSIDE = TOP / "home", TOP / "outside"
FILE, SPARE = HOME / "d/f", HOME / "d/spare"


def good() -> None:
    """Put the account's own file back, as an editor saves it."""
    SPARE.write_bytes((TOP / "good").read_bytes())
    if os.geteuid() == 0:
        owner = (TOP / "good").stat()
        os.chown(SPARE, owner.st_uid, owner.st_gid)
    SPARE.rename(FILE)


def final_link() -> None:
    SPARE.symlink_to("../../outside/f")
    SPARE.rename(FILE)
    good()


def final_pipe() -> None:
    os.mkfifo(SPARE)
    SPARE.rename(FILE)
    good()


def final_directory() -> None:
    FILE.unlink()
    FILE.mkdir()
    FILE.rmdir()
    good()


def final_inode() -> None:
    """Another account's file, which that account's rights alone would keep closed."""
    SPARE.write_bytes((OUTSIDE / "f").read_bytes())
    os.chown(SPARE, 54322, 54322)
    SPARE.rename(FILE)
    good()


def final_hard_link() -> None:
    os.link(OUTSIDE / "f", SPARE)
    SPARE.rename(FILE)
    good()


def directory_link(target: str) -> None:
    (HOME / "d").rename(HOME / "aside")
    (HOME / "d").symlink_to(target)
    (HOME / "d").unlink()
    (HOME / "aside").rename(HOME / "d")


def link_retarget() -> None:
    """A link that was inside when it was read leads out when it is used, were it used by name."""
    for target in ("../outside", "d"):
        (HOME / "spare").symlink_to(target)
        (HOME / "spare").rename(HOME / "l")


def moved_away() -> None:
    """A directory leaves the home while its `..` is taken: home/a/b/l is `../../d`, and outside has a `d` too."""
    (HOME / "a/b").rename(OUTSIDE / "a/b")
    (OUTSIDE / "a/b").rename(HOME / "a/b")


ATTACKS = {
    "final-link": final_link,
    "final-pipe": final_pipe,
    "final-directory": final_directory,
    "final-inode": final_inode,
    "final-hard-link": final_hard_link,
    "directory-absolute": lambda: directory_link(str(OUTSIDE)),
    "directory-relative": lambda: directory_link("../outside"),
    "directory-dots": lambda: directory_link("a/b/../../../outside"),
    "link-retarget": link_retarget,
    "moved-away": moved_away,
}


def main() -> None:
    attack, left = ATTACKS[sys.argv[1]], int(sys.argv[3])
    os.write(1, b"!")
    while left > 0 or not select.select([0], [], [], 0)[0]:
        attack()
        left -= 1
        if left == 0:
            os.write(1, b".")


if __name__ == "__main__":
    main()
