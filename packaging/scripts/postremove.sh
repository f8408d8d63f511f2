#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# After files are gone. deb: remove, then purge when that was asked for; rpm: 0 at a removal, 1 at an upgrade.
# What an administrator wrote in /etc/halod stays, and so does the account: its number must not be given to another.
set -eu

if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi

# State goes with a purge. rpm knows no purge: there it stays (docs/install-linux.md says how to remove it).
if [ "${1:-}" = purge ]; then
  rm -rf /var/lib/halod
fi
