# SPDX-License-Identifier: Apache-2.0
"""Run the acceptance cases of ../shared/cases against this checkout's halod.

    cases.py [--halod CMD] [CASE...]

A shared folder that was delivered without its symbolic links holds them as small files with the target as text
(git does so where `core.symlinks` is off). Such files are turned back into links in a copy, and said so; the
cases themselves stay as they are. Exit status: that of the cases' own runner; 0 with a printed reason when
there is no such folder.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT.parent / "shared" / "cases"


def flattened(path: Path, case: Path) -> str:
    """The target when `path` is a link that was written as text: a lone relative path of the same case; else ""."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size > 1024:
        return ""
    text = path.read_bytes()
    if b"\n" in text or b"/" not in text or text.startswith(b"/"):
        return ""
    target = path.parent / os.fsdecode(text)
    inside = case.resolve() in target.resolve().parents
    return os.fsdecode(text) if inside and target.exists() else ""


def main() -> int:
    """Copy, mend, run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--halod", default=str(ROOT / ".venv" / "bin" / "halod"))
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    if not CASES.is_dir():
        print(f"cases: skipped, there is no {CASES} beside this checkout")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "cases"
        shutil.copytree(CASES, copy, symlinks=True)
        for path in sorted(copy.rglob("*")):
            target = flattened(path, copy / path.relative_to(copy).parts[0])
            if target:
                path.parent.chmod(0o755)
                path.unlink()
                path.symlink_to(target)
                print(f"cases: {path.relative_to(copy)} is a link again")
        command = [sys.executable, str(copy / "run"), "--halod", args.halod, *args.names]
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
