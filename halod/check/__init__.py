# SPDX-License-Identifier: Apache-2.0
"""What `halod check` looks at: one module for each kind of thing, each giving checks in words.

model     what a check says
files     ownership, modes and ancestors of what the settings name; what a secret's file holds
policy    the policy, and whether it knows the device's ring and units
machine   the agent's account, the state directory, the sandbox
network   what an endpoint's answer means
examine   everything, in order
"""
