#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds halod-VERSION.pkg, on a Mac, from the self-contained build (`make dist` made it on that Mac).
# NOT RUN where halod is developed, which is Linux: only checked with shellcheck.
#
#   SIGN_APP="Developer ID Application: Acme (TEAMID0000)"    signs the programs
#   SIGN_PKG="Developer ID Installer: Acme (TEAMID0000)"      signs the package
#   NOTARY_PROFILE=acme                                       of `xcrun notarytool store-credentials`
# Without SIGN_APP the result is for a test machine: no privacy permission can be given to it.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly id=dev.halos.halod
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml | head -n 1)
work=build/pkg
rm -rf "$work"
mkdir -p "$work/root/opt" "$work/root/usr/local/bin" dist
cp -R build/bundle/halod "$work/root/opt/halod"
cp packaging/halod.toml "$work/root/opt/halod/halod.toml.sample"
ln -s /opt/halod/halod "$work/root/usr/local/bin/halod"
ln -s /opt/halod/halo "$work/root/usr/local/bin/halo"

if [[ -n ${SIGN_APP:-} ]]; then
  sign=(codesign --force --timestamp --options runtime --sign "$SIGN_APP")
  # Libraries first, then what loads them. No entitlement: nothing is injected, no library of another team is loaded.
  while IFS= read -r -d '' file; do
    if file -b "$file" | grep -q '^Mach-O'; then
      "${sign[@]}" "$file"
    fi
  done < <(find "$work/root/opt/halod/_internal" -type f -print0)
  "${sign[@]}" --identifier "$id.halo" "$work/root/opt/halod/halo"
  "${sign[@]}" --identifier "$id" "$work/root/opt/halod/halod"
  codesign --verify --strict "$work/root/opt/halod/halod"
fi

pkgbuild --root "$work/root" --identifier "$id" --version "$version" --install-location / --ownership recommended \
  --scripts packaging/macos/scripts "$work/halod-component.pkg"

product=(productbuild --package "$work/halod-component.pkg" --identifier "$id" --version "$version")
if [[ -n ${SIGN_PKG:-} ]]; then
  product+=(--sign "$SIGN_PKG" --timestamp)
fi
"${product[@]}" "dist/halod-$version.pkg"

if [[ -n ${NOTARY_PROFILE:-} ]]; then
  xcrun notarytool submit "dist/halod-$version.pkg" --keychain-profile "$NOTARY_PROFILE" --wait
  xcrun stapler staple "dist/halod-$version.pkg"
fi
echo "dist/halod-$version.pkg"
