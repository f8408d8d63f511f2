# SPDX-License-Identifier: Apache-2.0
"""Who may come in, and as whom."""
