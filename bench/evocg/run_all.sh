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
end=$((SECONDS + seconds)) failed=0
for experiment in training precision rule transfer jacobi cost endtoend saving trajectories reuse fp8 published; do
  case "$experiment $backend" in "saving cuda" | "published cuda") continue ;; esac # they learn on the CPU
  left=$((end - SECONDS))
  [ $left -gt 0 ] || { echo "run_all: the time is over before $experiment" >&2; left=0; }
  measured=(); [ $left -gt 0 ] || measured=(--measured)
  case $experiment in trajectories | reuse | fp8 | published) [ $left -gt 0 ] || continue ;; esac
  "$here/$experiment.py" --budget $left "${measured[@]}" "$@" > /dev/null || { echo "run_all: $experiment failed" >&2; failed=1; }
done
echo "run_all: the tables are in $(realpath -m "$out"), one EXPERIMENT.md and .json each" >&2
exit $failed
