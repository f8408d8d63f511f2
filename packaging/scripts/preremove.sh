#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Before files go. deb: remove, or upgrade VERSION; rpm: 0 at a removal, 1 at an upgrade.
set -eu

case "${1:-}" in
  remove | 0) ;;
  *) exit 0 ;; # an upgrade: the service goes on until the new version is there
esac

if [ -d /run/systemd/system ]; then
  systemctl disable --now halod.service
elif [ -L /etc/systemd/system/multi-user.target.wants/halod.service ]; then
  rm /etc/systemd/system/multi-user.target.wants/halod.service
fi
