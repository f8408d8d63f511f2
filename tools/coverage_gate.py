# SPDX-License-Identifier: Apache-2.0
"""Fail when the branch coverage of a part that security rests on is below its floor.

Reads the combined `.coverage` data, prints one line a part and the package's total. Exit 0 or 1.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

FLOOR = 95.0
PARTS = (
    "halod/home",
    "halod/launch",
    "halod/drift",
    "halod/status",
    "halod/roles",
    "halod/policy/signed",
    "halod/agent/fetched",
    "halod/console/ingest",
    "halod/console/security",
    "halod/console/settings",
    "halod/console/store",
    "halod/token",
)


def percent(files: dict[str, dict[str, dict[str, int]]], prefix: str) -> tuple[float, int]:
    """Lines and branches covered, in percent of all, over the files whose path begins with `prefix`."""
    covered = total = 0
    for name, data in files.items():
        if name == f"{prefix}.py" or name.startswith(f"{prefix}/"):
            summary = data["summary"]
            covered += summary["covered_lines"] + summary["covered_branches"]
            total += summary["num_statements"] + summary["num_branches"]
    return (100.0 * covered / total if total else 0.0), total


def main() -> int:
    """Print the table and judge it."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "coverage.json"
        command = [sys.executable, "-m", "coverage", "json", "-q", "-o", str(report)]
        subprocess.run(command, check=True)
        files = json.loads(report.read_text(encoding="utf-8"))["files"]
    failed = False
    for prefix in PARTS:
        share, total = percent(files, prefix)
        bad = share < FLOOR
        failed |= bad
        print(f"{prefix:<20} {share:6.2f} % of {total} lines and branches{'  BELOW 95 %' if bad else ''}")
    share, total = percent(files, "halod")
    print(f"{'halod':<20} {share:6.2f} % of {total} lines and branches")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
