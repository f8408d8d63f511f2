# SPDX-License-Identifier: Apache-2.0
"""The database and every query."""
