# SPDX-License-Identifier: Apache-2.0
"""What pages and API read: rows as they are shown, in pages, each query backed by an index.

Everything takes a connection and changes nothing. Filters and cursors may be any text (`Problem` 400).
"""
