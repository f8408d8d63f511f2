# SPDX-License-Identifier: Apache-2.0
"""`python -m halod`."""

import sys

from halod.cli import main

if __name__ == "__main__":
    sys.exit(main())
