# SPDX-License-Identifier: Apache-2.0
"""Installing halod as a machine service (design 3 and 10, `halod service`).

files    the unit, the job and their neighbours: where they come from, how they name this installation
plan     pure: what is written, removed and run for an action on a system
apply    a plan carried out, or shown
door     the only place of halod that starts programs: systemctl, launchctl and their like
"""
