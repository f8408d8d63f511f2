#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Extension attribute of Jamf Pro (data type: string): what the last scan of this Mac found, as one line, for example
#   clean findings=0 skipped=0 problems=0 age_hours=0
# The first word is clean, drift, incomplete, inventory or unknown. NOT RUN in a Jamf here: only checked with shellcheck.
if [[ ! -x /opt/halod/halod ]]; then
  echo "<result>not-installed</result>"
  exit 0
fi
# halod says <result>...</result> itself; its exit code tells of problems, and Jamf would take one for a failed script.
/opt/halod/halod status --format jamf-ea 2>/dev/null || true
