# SPDX-License-Identifier: Apache-2.0
"""What holds for every test: hypothesis measures no time, which says more of the machine than of the code."""

from hypothesis import HealthCheck, settings

settings.register_profile("halod", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("halod")
