# SPDX-License-Identifier: Apache-2.0
"""The versions of the schema, each one step on from the last (`halo-server migrate`)."""
