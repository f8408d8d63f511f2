# SPDX-License-Identifier: Apache-2.0
"""What a definition launches. Pure functions, no I/O (design 5)."""
