# SPDX-License-Identifier: Apache-2.0
"""`halo` of the self-contained build."""

import sys

from halod.cli.halo import main

sys.exit(main())
