#!/usr/bin/env bash
# Run the tests of the CUDA backend and keep what they said, with card, driver and commit, in bench/results/gpu-test-DATE.txt. Fails
# where there is no GPU to test. With --sanitize each test runs under compute-sanitizer's memcheck and racecheck instead, which takes far
# longer; the log is bench/results/gpu-sanitize-DATE.txt. usage: tools/gpu_test.sh [--sanitize] [BUILD FOLDER] (COMMIT=... where there is
# no git). Racecheck takes the engines' small test for their long ones, memcheck fewer of their systems.
# SPDX-License-Identifier: BSD-3-Clause
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
sanitizer=
kind='test'
if [ "${1:-}" = --sanitize ]; then
  sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
  [ -n "$sanitizer" ] || { echo "gpu-test: compute-sanitizer is neither in PATH nor in /usr/local/cuda/bin; it comes with the CUDA toolkit" >&2; exit 1; }
  kind=sanitize
  shift
fi
build=${1:-build}
log=bench/results/gpu-$kind-$(date -u +%F).txt
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

# Every gpu test under both tools. A test that is refused memory or a launch on purpose gets those errors back: they are no finding.
sanitize() {
  local failed=0 ran=0 test tool code
  for test in "$build"/tests/gpu_*; do
    if [ ! -f "$test" ] || [ ! -x "$test" ]; then continue; fi
    for tool in memcheck racecheck; do
      case $tool:$(basename "$test") in racecheck:gpu_cuda_engines | racecheck:gpu_cuda_precond) continue ;; esac
      echo "== $tool: $(basename "$test")"
      HALFTONE_SHORT=1 "$sanitizer" --tool "$tool" --report-api-errors no --error-exitcode 99 "$test" 2>&1
      code=$?
      [ "$code" -eq 77 ] && echo "Skipped"
      [ "$code" -eq 0 ] || failed=1
      ran=$((ran + 1))
    done
  done
  echo "== $ran runs, $([ "$failed" -eq 0 ] && echo "all clean" || echo "not all clean")"
  [ "$ran" -gt 0 ] && [ "$failed" -eq 0 ]
}

if [ -n "$sanitizer" ]; then
  sanitize | sed "s|$PWD/||g" | tee -a "$new"
else
  ctest --test-dir "$build" -L gpu --no-tests=error --verbose 2>&1 | sed "s|$PWD/||g" | tee -a "$new"
fi
status=${PIPESTATUS[0]}
if grep -q 'Skipped' "$new"; then
  echo "gpu-test: there is no GPU to test: no log is kept" >&2
  exit 1
fi
cp "$new" "$log" && echo "gpu-test: wrote $log"
exit "$status"
