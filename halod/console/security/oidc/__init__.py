# SPDX-License-Identifier: Apache-2.0
"""Signing in with the organisation's OpenID provider: authorization code with PKCE.

`wire` asks the provider, bounded in time and size; `provider` knows its metadata and keys; `identity` decides, without
I/O, whether an ID token counts and what role it gives; `journey` are the routes a browser takes.
"""
