# SPDX-License-Identifier: Apache-2.0
"""Build everything twice, in two places, and compare the results byte by byte. Exit 0: they are the same.

Each build gets a copy of the committed files of its own, so that neither sees the other's path or leftovers. Runs in
the environment of requirements/dist.txt: `make verify-dist`.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Build, compare, and print one line a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help="as for packaging/build.py; default: all")
    parts = parser.parse_args().parts
    commit = git("rev-parse", "HEAD")
    with tempfile.TemporaryDirectory() as folder:
        first = build(commit, Path(folder) / "one", parts)
        second = build(commit, Path(folder) / "two" / "deeper", parts)
    for name in sorted(first.keys() | second.keys()):
        same = first.get(name) == second.get(name)
        print(f"{'same     ' if same else 'DIFFERENT'}  {first.get(name, '-' * 64)}  {name}")
    return 0 if first == second and first else 1


def git(*words: str) -> str:
    """Ask git."""
    done = subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def build(commit: str, folder: Path, parts: list[str]) -> dict[str, str]:
    """Build in a copy of a commit; give the sha256 of each result."""
    folder.mkdir(parents=True)
    packed = folder / "source.tar"
    git("archive", "-o", str(packed), commit)
    tree = folder / "tree"
    with tarfile.open(packed) as archive:
        archive.extractall(tree, filter="data")
    when = git("log", "-1", "--format=%ct", commit)
    command = [sys.executable, str(tree / "packaging" / "build.py"), *parts]
    subprocess.run(command, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": when}, stdout=sys.stderr)
    results = sorted((tree / "dist").iterdir())
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in results}


if __name__ == "__main__":
    sys.exit(main())
