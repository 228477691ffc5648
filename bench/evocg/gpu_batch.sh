#!/usr/bin/env bash
# The GPU part of the experiments in one go, for a machine that is lent for some minutes: trains by the paper's reward on the device, then compares.
# usage: gpu_batch.sh FOLDER OUT
# FOLDER has halftone, bench_gpu_cg, what gpu_prepare.py makes, the policy that is carried over, and list.tsv: matrix, recipe or file, the matrix
# whose policy it takes ("-": its own), small or large. In policies/ are policies that are not to be trained again, in time/ those of the reward
# `time` (saving.py). collect.py reads OUT. settled/ receives, for each matrix, what was fastest behind the guard: its policy, that of time/, or a
# level throughout.
# environment: TRAIN (options of halftone train), TRAIN_SECONDS (of a matrix, 8), TRAIN_UNTIL (no training is begun after so many seconds, 60),
# SCALE (of the seconds of the comparisons, 1), TRANSFER (a policy file), COMMIT
# SPDX-License-Identifier: BSD-3-Clause
set -uo pipefail
cd "$1" && out=$2 scale=${SCALE:-1}
say() { echo "[$SECONDS s] $*"; }
mkdir -p "$out/policies" "$out/settled" m policies time settled

while IFS=$'\t' read -r name recipe _; do
  [ -e "$recipe" ] || OMP_NUM_THREADS=4 ./halftone gen $recipe -o "m/$name.npz" --quiet &
done < list.tsv
wait
say "generated $(ls m | wc -l)"
file_of() { [ -e "m/$1.npz" ] && echo "m/$1.npz" || echo "$2"; }

train() { # NAME FILE
  timeout --foreground -s INT "${TRAIN_SECONDS:-8}" ./halftone train "$2" -o "policies/$1.safetensors" --reward paper ${TRAIN:-} --backend cuda --json \
    > "$out/policies/$1.json" 2> "$out/policies/$1.err" < /dev/null
}
given=() large=()
while IFS=$'\t' read -r name recipe whose size; do
  file=$(file_of "$name" "$recipe")
  [ "$size" = large ] && large+=("$name=$file") || given+=("$name=$file")
  [ "$whose" = - ] && [ ! -e "policies/$name.safetensors" ] && [ $SECONDS -lt "${TRAIN_UNTIL:-60}" ] && train "$name" "$file"
done < list.tsv
while IFS=$'\t' read -r name recipe whose _; do # after all are trained
  [ "$whose" = - ] && continue
  for folder in policies time; do [ -e "$folder/$whose.safetensors" ] && cp "$folder/$whose.safetensors" "$folder/$name.safetensors"; done
done < list.tsv
cp policies/*.safetensors "$out/policies/"
say "policies: $(ls policies | wc -l)"

bench() { # NAME SECONDS options
  local name=$1 total
  total=$(awk -v s="$2" -v k="$scale" 'BEGIN { print s * k }')
  shift 2
  timeout 120 ./bench_gpu_cg --out "$out/$name.json" --commit "${COMMIT:-}" --total-seconds "$total" "$@" > "$out/$name.txt" 2>&1
  say "$name: $?, $(grep -c '"matrix"' "$out/$name.json") rows"
}
own='learned:policies/{matrix}.safetensors' saving='learned:time/{matrix}.safetensors' settled='learned:settled/{matrix}.safetensors'
carried=learned:${TRANSFER:-mesh2e1.safetensors} constants=learned:constant1024.safetensors,learned:constant64.safetensors,learned:constant8.safetensors,learned:constant4096.safetensors
guarded=(--option ordering=natural --engine paper)
unguarded=(--option guard=off --option stopping=paper --option column-sums=off "${guarded[@]}")

# The fastest behind the guard that converges, by more than 1 % against FP64. Columns of the table: matrix, policy, n, nnz, iterations, ms.
settle() { # SECONDS FILES...
  bench settle "$1" --pairs 3 --seconds 0.6 --peers 0 "${guarded[@]}" --policies "fixed:f64,$own,$saving,fixed:f32,fixed:bf16" "${@:2}"
  awk '/ converged / { if ($2 == "fixed:f64") { order[++n] = $1; best[$1] = 0.99 * $6; who[$1] = $2 } else if ($6 < best[$1]) { best[$1] = $6; who[$1] = $2 } }
       END { for (i = 1; i <= n; i++) print order[i], who[order[i]] }' "$out/settle.txt" | tee "$out/settled.txt" | while read -r name who; do
    case $who in
      fixed:f64) from=kept64 ;;
      fixed:f32) from=kept32 ;;
      fixed:bf16) from=kept16 ;;
      *) who=${who#learned:} from=${who%%/*}/$name ;;
    esac
    cp "$from.safetensors" "settled/$name.safetensors"
  done
  say "settled: $(cut -d' ' -f2 "$out/settled.txt" | sort | uniq -c | tr -s ' \n' ' ')"
}
settle 10 "${given[@]}"
bench cg 22 --pairs 3 --seconds 2.5 "${unguarded[@]}" --policies "fixed:f64,$own,$carried,$constants,rule,fixed:f32,fixed:bf16,budget" "${given[@]}"
bench guarded 16 --pairs 3 --seconds 1.5 --peers 0 "${guarded[@]}" --policies "fixed:f64,$own,$saving,$settled,$carried,rule,fixed:f32,fixed:bf16,budget" "${given[@]}"
bench product 8 --pairs 5 --seconds 1 --policies fixed:f64,auto "${given[@]}"
bench jacobi 8 --pairs 3 --seconds 1 --precond jacobi "${unguarded[@]}" --policies "fixed:f64,$own,fixed:f32,fixed:bf16" "${given[@]}"
if [ ${#large[@]} -gt 0 ]; then
  bench large-cg 20 --pairs 3 --seconds 4 "${unguarded[@]}" --policies "fixed:f64,$own,learned:constant1024.safetensors,fixed:f32,fixed:bf16" "${large[@]}"
  bench large-guarded 20 --pairs 3 --seconds 4 --peers 0 "${guarded[@]}" --policies "fixed:f64,$own,$saving,fixed:f32,fixed:bf16,budget" "${large[@]}"
  bench large-product 10 --pairs 3 --seconds 3 --peers 0 --policies fixed:f64,auto "${large[@]}"
fi
grep -hE 'error|cannot|not valid' "$out"/*.txt | sort | uniq -c | head -8
