# SPDX-License-Identifier: Apache-2.0
"""`python -m halod.console.api > docs/console-openapi.json`: write the OpenAPI document as it is checked in."""

import sys

from halod.console.api import DESCRIBED, OPERATIONS
from halod.console.api.openapi import text

if __name__ == "__main__":
    sys.stdout.write(text(DESCRIBED, OPERATIONS))
