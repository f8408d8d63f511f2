# SPDX-License-Identifier: Apache-2.0
"""halos.yaml: model, load, validate, scope by ring and unit (design 7)."""
