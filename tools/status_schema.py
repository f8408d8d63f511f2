# SPDX-License-Identifier: Apache-2.0
"""Write docs/status.schema.json from the types of halod.status; with `--check`, only compare."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from halod import status  # noqa: E402 - the checkout's own package

TARGET = ROOT / "docs" / "status.schema.json"


def main() -> int:
    """Exit 1 when `--check` finds that the file is not what would be written."""
    text = json.dumps(status.schema(), indent=2) + "\n"
    if "--check" in sys.argv[1:]:
        current = TARGET.exists() and TARGET.read_text(encoding="utf-8") == text
        if not current:
            print(f"{TARGET.name} is not current: run tools/status_schema.py", file=sys.stderr)
        return 0 if current else 1
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
