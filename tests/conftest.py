# SPDX-License-Identifier: Apache-2.0
"""What holds for every test.

hypothesis measures no time, which says more of the machine than of the code, and draws the same examples each time, so that
a run says the same of a commit wherever it is made. HALOD_TEST_RANDOM=1 draws others; so does `make fuzz`, for hours.
"""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "halod",
    deadline=None,
    derandomize=os.environ.get("HALOD_TEST_RANDOM") != "1",
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("halod")
