#!/usr/bin/env bash
# Every experiment of the EvoCG paper, each with its tables in the folder that --out names (evocg-out).
# usage: bench/evocg/run_all.sh [SECONDS] [options of the experiments]
# SECONDS, 3600 unless told otherwise, is shared: what is not done by then is left out, and a second call goes on.
# SPDX-License-Identifier: BSD-3-Clause
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
seconds=3600
out=evocg-out backend=cpu matrices=${HALFTONE_MATRICES:-} words=("$@")
for i in "${!words[@]}"; do
  case ${words[i]} in
    --out) out=${words[i + 1]:-} ;;
    --out=*) out=${words[i]#*=} ;;
    --matrices) matrices=${words[i + 1]:-} ;;
    --matrices=*) matrices=${words[i]#*=} ;;
    cuda) backend=cuda ;;
  esac
done
[ -z "$matrices" ] || [ -d "$matrices" ] || { echo "run_all: there is no folder $matrices, which --matrices or HALFTONE_MATRICES names" >&2; exit 2; }
if [[ ${1:-} =~ ^[0-9]+$ ]]; then seconds=$1; shift; fi
end=$((SECONDS + seconds))

# What is told is told once, whatever experiment meets it.
once() { awk '!told[$0]++ { print; fflush() }' >&2; }

run() {
  local over='' left_out='' made='' failed=0 experiment left measured
  for experiment in training precision rule transfer jacobi cost endtoend saving trajectories reuse fp8 published; do
    case "$experiment $backend" in "saving cuda" | "published cuda") echo "run_all: $experiment is left out with --backend cuda: it learns on the CPU"; continue ;; esac
    left=$((end - SECONDS)) measured=()
    if [ $left -le 0 ]; then
      [ -n "$over" ] || echo "run_all: the time is over; from $experiment on tables have what was measured before"
      over=1 left=0 measured=(--measured)
      case $experiment in trajectories | reuse | fp8 | published) left_out+=" $experiment"; continue ;; esac # they keep no measurements
    fi
    if "$here/$experiment.py" --budget $left "${measured[@]}" "$@" 2>&1 >/dev/null; then made+=" $experiment"; else echo "run_all: $experiment failed"; failed=1; fi
  done
  [ -z "$left_out" ] || echo "run_all: left out, since the time is over:$left_out"
  echo "run_all: in $(realpath -m "$out") are the tables, a .md and a .json each, of:${made:- none}"
  return $failed
}

run "$@" 2>&1 | once
exit "${PIPESTATUS[0]}"
