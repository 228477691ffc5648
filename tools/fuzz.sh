#!/usr/bin/env bash
# Run every fuzz target for some seconds, two at a time; a crash leaves its input in build-fuzz/.
# usage: tools/fuzz.sh SECONDS_PER_TARGET   SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
root=$PWD
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz --parallel "$(nproc)" >build-fuzz/build.log 2>&1 || { tail -n 40 build-fuzz/build.log; exit 1; }
targets=$(find build-fuzz/tests/fuzz -maxdepth 1 -type f -name 'fuzz_*' -perm -u+x | sort)
[ -n "$targets" ] || { echo "fuzz: there are no targets"; exit 0; }
export OMP_NUM_THREADS=1
one() { # NAME
  local name=$1 seeds=$root/tests/fuzz/corpus/$1 folder=$root/build-fuzz/$1
  mkdir -p "$folder/corpus"
  [ -d "$seeds" ] || seeds=
  # shellcheck disable=SC2086
  if "$root/build-fuzz/tests/fuzz/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=4096 -print_final_stats=1 \
    -artifact_prefix="$folder/" "$folder/corpus" $seeds >"$folder/log" 2>&1; then
    echo "fuzz: $name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$folder/log") inputs, nothing found"
  else
    tail -n 60 "$folder/log"
    echo "fuzz: $name FAILED; the input is in $folder"
    return 1
  fi
}
export -f one
export root seconds
for target in $targets; do basename "$target"; done | xargs -P "$(nproc)" -I{} bash -euo pipefail -c 'one {}'
