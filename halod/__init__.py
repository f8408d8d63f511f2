# SPDX-License-Identifier: Apache-2.0
"""halod: which MCP servers a machine's people have configured, and which nobody approved."""

__version__ = "0.1.0"
