# SPDX-License-Identifier: Apache-2.0
"""`make run`: scan the caller's own home with the sample policy, or show the demonstration home.

Exit 0 when the scan ran, whatever it found; the scan's own exit code otherwise.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HALOD = [str(Path(sys.executable).parent / "halod"), "scan"]
POLICY = ["--policy", "packaging/halos.yaml", "--ring", "ring1-canary"]
DEMO = ["--home", "packaging/demo-home"]


def configured() -> bool:
    """Whether the caller's home has anything to show; a scan that cannot run shows its own error."""
    done = subprocess.run([*HALOD, *POLICY, "--format", "json"], cwd=ROOT, capture_output=True, check=False)
    if done.returncode not in {0, 1, 3}:
        return True
    status = json.loads(done.stdout)
    return bool(status["coverage"]["definitions"] or status["skipped"])


def main() -> int:
    """Say what is scanned and with which command, then scan it."""
    arguments = POLICY
    if configured():
        print("Your own home, compared with the sample policy packaging/halos.yaml:\n")
    else:
        print("No AI tool in your home has an MCP server configured.")
        print("DEMONSTRATION: the bundled home packaging/demo-home, not yours.\n")
        arguments = [*DEMO, *POLICY]
    print(f"$ halod scan {' '.join(arguments)}\n", flush=True)
    code = subprocess.run([*HALOD, *arguments], cwd=ROOT, check=False).returncode
    return 0 if code in {0, 1, 3} else code


if __name__ == "__main__":
    sys.exit(main())
