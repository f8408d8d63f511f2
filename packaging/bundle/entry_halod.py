# SPDX-License-Identifier: Apache-2.0
"""`halod` of the self-contained build."""

import sys

from halod.cli import main

sys.exit(main())
