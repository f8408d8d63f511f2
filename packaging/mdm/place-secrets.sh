#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Places the enrolment key, root's, mode 0600. For a script of your device management (Jamf policy, Intune, Fleet), which
# keeps the key: put it in as the fourth parameter (Jamf), or in HALOD_ENROLL_KEY. It is used once a device.
# NOT RUN in a device management here: only checked with shellcheck and, on Linux, by a test.
set -eu
umask 077
key=${HALOD_ENROLL_KEY:-${4:-}}
if [[ -z $key ]]; then
  echo "no key given" >&2
  exit 1
fi
if [[ $(uname) == Darwin ]]; then
  folder="/Library/Application Support/halod"
else
  folder=/etc/halod
fi
folder=${HALOD_FOLDER:-$folder}
install -d -m 0755 "$folder"
# printf is part of the shell: the key becomes no argument of another process. (A parameter of Jamf is one of this
# script's own, for its moment: a key for enrolment only, which an operator can withdraw.)
printf '%s\n' "$key" >"$folder/enroll.key.new"
mv "$folder/enroll.key.new" "$folder/enroll.key"
