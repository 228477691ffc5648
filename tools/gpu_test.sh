#!/usr/bin/env bash
# Run the tests of the CUDA backend and keep what they said, with card, driver and commit, in bench/results/gpu-test-DATE.txt. Fails
# where there is no GPU to test. usage: tools/gpu_test.sh [BUILD FOLDER] (COMMIT=... where there is no git)
# SPDX-License-Identifier: BSD-3-Clause
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
build=${1:-build}
log=bench/results/gpu-test-$(date -u +%F).txt
new=$(mktemp)
trap 'rm -f "$new"' EXIT
commit=${COMMIT:-$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)}
[ -z "$(git status --porcelain --untracked-files=no 2>/dev/null)" ] || commit="$commit with changes"

"$build/halftone" info | sed -n 's/^\(version\|cuda\) /&/p' >"$new"
printf '%-12s %s\n' commit "$commit" date "$(date -u +%FT%TZ)" >>"$new"
if command -v nvidia-smi >/dev/null; then
  printf '%-12s %s\n' driver "$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)" >>"$new"
fi
echo >>"$new"
ctest --test-dir "$build" -L gpu --no-tests=error --verbose 2>&1 | sed "s|$PWD/||g" | tee -a "$new"
status=${PIPESTATUS[0]}
if grep -q 'Skipped' "$new"; then
  echo "gpu-test: there is no GPU to test: no log is kept" >&2
  exit 1
fi
cp "$new" "$log" && echo "gpu-test: wrote $log"
exit "$status"
