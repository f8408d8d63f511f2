# SPDX-License-Identifier: Apache-2.0
"""The agent of `halod run`: cycles, triggers, the state database and delivery (design 9).

It runs as an account of its own, sees neither a path below a home nor a definition, and is the only role with
network. It imports nothing of the console.
"""
