#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Removes halod from a Mac; with --purge also settings, state, log and the agent's account. Run as root.
# NOT RUN where halod is developed, which is Linux: only checked with shellcheck.
set -eu
if [[ -x /opt/halod/halod ]]; then
  /opt/halod/halod service uninstall
fi
rm -rf /opt/halod
rm -f /usr/local/bin/halod /usr/local/bin/halo
pkgutil --forget dev.halos.halod >/dev/null 2>&1 || true
if [[ ${1:-} == --purge ]]; then
  rm -rf "/Library/Application Support/halod"
  rm -f /Library/Logs/halod.log /Library/Logs/halod.log.*
  dscl . -delete /Users/_halod 2>/dev/null || true
  dscl . -delete /Groups/_halod 2>/dev/null || true
fi
