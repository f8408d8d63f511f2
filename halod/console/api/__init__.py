# SPDX-License-Identifier: Apache-2.0
"""The JSON API and the exports."""
