#!/usr/bin/env bash
# Tracked files hold no absolute paths of somebody's machine, no hosts of package registries, no credentials and no notes to self.
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
cd "$(dirname "$0")/.."
status=0
# usage: refuse WHAT PATTERN
refuse() {
  local found
  found=$(git grep -nIE "$2" -- . ':!tools/check_words.sh' ':!docs/roadmap.md' || true)
  if [ -n "$found" ]; then printf '%s:\n%s\n' "$1" "$found"; status=1; fi
}
refuse 'a path of one machine' '(^|[^A-Za-z0-9_.-])/(work|farm|home|root|Users|mnt)/[A-Za-z0-9_.]'
refuse 'a host of a package registry' '(deb\.debian\.org|pypi\.org|pythonhosted\.org|registry\.npmjs|crates\.io|proxy\.golang)'
refuse 'a note to self' '\b(TODO|FIXME|XXX|HACK)\b'
refuse 'what looks like a key' '(BEGIN [A-Z ]*PRIVATE KEY|ghp_[A-Za-z0-9]{20})'
for file in $(git ls-files '*.c' '*.h' '*.py' '*.sh' '*.def' 'CMakeLists.txt' '*.cmake'); do
  grep -q 'SPDX-License-Identifier: BSD-3-Clause' "$file" || case $file in
    *.def) ;;
    *) echo "$file: no SPDX line"; status=1 ;;
  esac
done
[ $status -eq 0 ] && echo "words: nothing found"
exit $status
