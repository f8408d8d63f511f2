# SPDX-License-Identifier: Apache-2.0
"""`halo-server`, one file per command."""
