#!/usr/bin/env bash
# From how many nonzeros on a GPU gains: the same problems, of 1e3 to 1e6 nonzeros, on both backends of this machine, the device already
# taken. Prints milliseconds (medians) and, for each family, where the GPU begins to win for good: in the solve alone, and in set-up and one
# solve together. The second is the number for LEAST_NONZEROS in src/solver/choose_backend.c, the first its lower bound.
# usage: bench/gpu/crossover.sh [BUILD FOLDER] [REPEATS]        (after: cmake --build build --target bench_setup)
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
bench=${1:-build}/bench/bench_setup
repeats=${2:-21}
[ -x "$bench" ] || { echo "crossover: $bench is not there: build the target bench_setup" >&2; exit 1; }
stencils=() cubes=() fems=()
for size in 14 20 28 40 56 80 113 160 226 320 450; do stencils+=("stencil2d size=$size points=5"); done
for size in 4 5 6 8 10 13 16 21 26 33; do cubes+=("stencil3d size=$size points=27 coefficients=lognormal sigma=1 seed=1"); done
for size in 12 17 24 34 48 68 96 136 192 272 380; do fems+=("fem2d size=$size numbering=random coefficients=lognormal sigma=1 seed=1"); done
warm='stencil2d size=40 points=5' # the device is taken, and kernels are loaded

for side in cpu gpu; do
  backend=${side/gpu/${GPU:-cuda}} # GPU=cuda:1 takes another
  "$bench" --backend "$backend" --repeats "$repeats" --solve 1 "$warm" "${stencils[@]}" "${cubes[@]}" "${fems[@]}" | sed "1,2d; s/^/$side /"
done | awk '
  { nnz = $(NF - 7); fresh = $(NF - 3); solve = $NF; family = $2; key = family SUBSEP nnz
    if ($1 == "cpu") { cpu_fresh[key] = fresh; cpu_solve[key] = solve; order[++count] = key }
    else { gpu_fresh[key] = fresh; gpu_solve[key] = solve } }
  END {
    printf "%-12s %9s %11s %11s %11s %11s   solve   whole\n", "family", "nnz", "cpu setup", "cpu solve", "gpu setup", "gpu solve"
    for (k = 1; k <= count; k++) {
      key = order[k]; split(key, part, SUBSEP); family = part[1]
      if (!(family in seen)) { seen[family] = 1; families[++f] = family; solve_from[family] = whole_from[family] = "none" }
      solve = cpu_solve[key] / gpu_solve[key]; whole = (cpu_fresh[key] + cpu_solve[key]) / (gpu_fresh[key] + gpu_solve[key])
      printf "%-12s %9d %11.3f %11.3f %11.3f %11.3f %7.2f %7.2f\n", family, part[2], cpu_fresh[key], cpu_solve[key], gpu_fresh[key], gpu_solve[key], solve, whole
      if (solve < 1) solve_from[family] = "none"; else if (solve_from[family] == "none") solve_from[family] = part[2]
      if (whole < 1) whole_from[family] = "none"; else if (whole_from[family] == "none") whole_from[family] = part[2]
    }
    for (k = 1; k <= f; k++)
      printf "%s: the GPU wins in the solve from %s nonzeros on, in set-up and solve together from %s\n", families[k], solve_from[families[k]], whole_from[families[k]]
  }'
