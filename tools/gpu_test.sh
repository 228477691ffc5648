#!/usr/bin/env bash
# Run the tests of the CUDA backend, and the real matrices of the folder HALFTONE_MATRICES on GPU and CPU, and add what they said, with card,
# driver and commit, to bench/results/gpu-test-DATE.txt. Fails where there is no GPU to test. With --sanitize each test runs under
# compute-sanitizer's memcheck and racecheck instead, or one of them, which takes far longer; the log is bench/results/gpu-sanitize-DATE.txt.
# usage: tools/gpu_test.sh [--sanitize [memcheck|racecheck]] [BUILD FOLDER [NAME...]] (COMMIT=... where there is no git)
# A NAME is that of a program (gpu_cuda_store) or real_matrices; without one, everything runs. Nothing but BUILD/halftone and
# BUILD/tests/gpu_* is needed of a build. Racecheck takes the engines' small test for their long ones, memcheck fewer of their systems.
# SPDX-License-Identifier: BSD-3-Clause
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
kind='test'
tools=(memcheck racecheck)
if [ "${1:-}" = --sanitize ]; then
  kind=sanitize
  shift
  case ${1:-} in memcheck | racecheck) tools=("$1"); shift ;; esac
  sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
  [ -n "$sanitizer" ] || { echo "gpu-test: compute-sanitizer is neither in PATH nor in /usr/local/cuda/bin; it comes with the CUDA toolkit" >&2; exit 1; }
fi
build=${1:-build}
names=("${@:2}")
for name in "${names[@]}"; do
  [ -x "$build/tests/$name" ] || [ "$kind $name" = 'test real_matrices' ] || { echo "gpu-test: there is no test $name in $build/tests" >&2; exit 1; }
done
matrices=${HALFTONE_MATRICES:-$(sed -n 's/^HALFTONE_MATRICES:PATH=//p' "$build/CMakeCache.txt" 2>/dev/null)}
export OMP_WAIT_POLICY=passive HALFTONE="$build/halftone" HALFTONE_SOURCE="$PWD" HALFTONE_MATRICES="$matrices"
readonly no_gpu=77 # a test's status where it finds none

new=$(mktemp) # for the log
said=$(mktemp) # by one test
trap 'rm -f "$new" "$said"' EXIT
commit=${COMMIT:-}
if [ -z "$commit" ]; then
  commit=$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
  [ -z "$(git status --porcelain --untracked-files=no 2>/dev/null)" ] || commit="$commit with changes"
fi
{
  printf '######## commit %s, %s\n' "$commit" "$(date -u +%FT%TZ)"
  "$build/halftone" info | sed -n 's/^\(version\|cuda\) /&/p'
  echo
} >"$new"

# Whether it is to run: all are where none is named.
wanted() { [ ${#names[@]} -eq 0 ] || [[ " ${names[*]} " == *" $1 "* ]]; }

programs() {
  local test
  for test in "$build"/tests/gpu_*; do
    if [ -f "$test" ] && [ -x "$test" ] && wanted "$(basename "$test")"; then echo "$test"; fi
  done
}

run_tests() {
  local failed=0 passed=0 test code count
  for test in $(programs); do
    echo "== $(basename "$test")"
    timeout 600 "$test" 2>&1 | tee "$said"
    code=${PIPESTATUS[0]}
    [ "$code" -ne $no_gpu ] || return $no_gpu
    [ "$code" -eq 0 ] || { failed=1; echo "== exit status $code"; }
    count=$(sed -n 's/.*PASSED  *\] *\([0-9]*\) test.*/\1/p' "$said")
    passed=$((passed + ${count:-0}))
  done
  echo "== $passed tests, $([ $failed -eq 0 ] && echo "all passed" || echo "and others failed")"
  return $failed
}

# Some pairs of solves side by side, each of 5 s at most: the whole collection within a minute.
run_real_matrices() {
  local jobs
  jobs=$(nproc)
  echo "== real matrices"
  if [ -z "$matrices" ]; then
    echo "left out: HALFTONE_MATRICES names no folder of matrices"
    [ ${#names[@]} -eq 0 ] # who asks for them by name wants them
    return
  fi
  python3 tests/gpu/real_matrices.py "$build/halftone" "$matrices" --time-limit 5 --jobs $((jobs < 8 ? jobs : 8)) 2>&1
}

# Every gpu test under the tools. A test that is refused memory or a launch on purpose gets those errors back: they are no finding.
run_sanitizer() {
  local failed=0 ran=0 test tool code
  for test in $(programs); do
    for tool in "${tools[@]}"; do
      case $tool:$(basename "$test") in racecheck:gpu_cuda_engines | racecheck:gpu_cuda_precond) continue ;; esac
      echo "== $tool: $(basename "$test")"
      HALFTONE_SHORT=1 "$sanitizer" --tool "$tool" --report-api-errors no --error-exitcode 99 "$test" 2>&1
      code=$?
      [ "$code" -ne $no_gpu ] || return $no_gpu
      [ "$code" -eq 0 ] || failed=1
      ran=$((ran + 1))
    done
  done
  echo "== $ran runs, $([ $failed -eq 0 ] && echo "all clean" || echo "not all clean")"
  [ $ran -gt 0 ] && [ $failed -eq 0 ]
}

run_all() {
  local failed=0 code
  if [ $kind = sanitize ]; then
    run_sanitizer
    return
  fi
  if [ -n "$(programs)" ]; then
    run_tests
    code=$?
    [ $code -ne $no_gpu ] || return $no_gpu
    [ $code -eq 0 ] || failed=1
  elif [ ${#names[@]} -eq 0 ]; then
    echo "gpu-test: there are no tests in $build/tests" >&2
    return 1
  fi
  if wanted real_matrices; then run_real_matrices || failed=1; fi
  return $failed
}

run_all | sed -u "s|$PWD/||g; s|${matrices:-$PWD}/||g" | tee -a "$new"
status=${PIPESTATUS[0]}
if [ "$status" -eq $no_gpu ]; then
  echo "gpu-test: there is no GPU to test: no log is kept" >&2
  exit 1
fi
log=bench/results/gpu-$kind-$(date -u +%F).txt
mkdir -p bench/results
if [ -s "$log" ]; then echo >>"$log"; fi
cat "$new" >>"$log" && echo "gpu-test: added to $log"
exit "$status"
