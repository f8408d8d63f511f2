#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Extension attribute of Jamf Pro (data type: string): the version of halod on this Mac. NOT RUN in a Jamf here.
version=$(/opt/halod/halod --version 2>/dev/null)
echo "<result>${version:-not-installed}</result>"
