# SPDX-License-Identifier: Apache-2.0
"""The signed policy and the registry."""
