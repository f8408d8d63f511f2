#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# After unpacking. deb: configure VERSION-BEFORE (none at the first time); rpm: 1 at the first time, 2 at an upgrade.
set -eu

case "${1:-}" in
  configure | [0-9]*) ;;
  *) exit 0 ;; # abort-upgrade and the like: nothing was changed
esac

systemd-sysusers halod.conf

if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  # Only when it runs already: an installed halod is not a configured one. Not waited for: its first cycle may be long.
  systemctl --no-block try-restart halod.service
fi
