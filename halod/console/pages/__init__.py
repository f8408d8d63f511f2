# SPDX-License-Identifier: Apache-2.0
"""The pages for people."""
