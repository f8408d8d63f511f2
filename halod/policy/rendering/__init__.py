# SPDX-License-Identifier: Apache-2.0
"""The policy as the files that the organisation manages on a machine: what `halo plan` writes.

`manifest.plan` renders every harness; a module with a harness's name renders that one's files. All of it is pure.
"""
