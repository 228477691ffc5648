#!/usr/bin/env bash
# The GPU part of the experiments in one go, for a machine that is lent for a minute: trains (TRAIN_ON=cpu: one matrix a core, all at once;
# TRAIN_ON=cuda: one after the other), then compares on the device, each part within a time. Needs halftone, bench_gpu_cg and list.tsv (name, recipe
# or file) in this folder; collect.py reads the output.
# A policy that lies in policies/ is not trained again. Policies in settled/ are those where a solve behind the guard was measured to be faster
# than FP64, and else constant64.safetensors, which always says FP64.
# usage: gpu_batch.sh FOLDER-WITH-PROGRAMS OUT [SECONDS-OF-TRAINING-A-MATRIX]
# environment: TRAIN_ON, TRAIN (options of halftone train), TRANSFER (a policy file), COMMIT
# SPDX-License-Identifier: BSD-3-Clause
set -uo pipefail
cd "$1" && out=$2 seconds=${3:-15} cores=$(nproc)
say() { echo "[$SECONDS s] $*"; }
mkdir -p "$out/policies" "$out/settled" m policies settled

file_of() { # a matrix in m/, or the file that the list names
  if [ -e "m/$1.npz" ]; then echo "m/$1.npz"; else echo "$2"; fi
}
while IFS=$'\t' read -r name recipe; do
  [ -e "$recipe" ] || OMP_NUM_THREADS=4 ./halftone gen $recipe -o "m/$name.npz" --quiet &
done < list.tsv
wait
say "generated $(ls m | wc -l)"

train() { # NAME RECIPE options
  local name=$1 file
  file=$(file_of "$1" "$2")
  shift 2
  timeout -s INT "$seconds" ./halftone train "$file" -o "policies/$name.safetensors" --reward paper ${TRAIN:-} --patience 0 \
    --json "$@" > "$out/policies/$name.json" 2> "$out/policies/$name.err"
}
while IFS=$'\t' read -r name recipe; do
  [ -e "policies/$name.safetensors" ] && continue # brought along
  if [ "${TRAIN_ON:-cpu}" = cpu ]; then
    train "$name" "$recipe" --threads 1 --tiles 8 --update 512 &
  elif [ $SECONDS -lt "${TRAIN_UNTIL:-30}" ]; then
    train "$name" "$recipe" --backend cuda < /dev/null
  fi
done < <(head -"$cores" list.tsv)
wait
cp policies/*.safetensors "$out/policies/"
say "trained $(ls policies | wc -l)"

given=()
while IFS=$'\t' read -r name recipe; do given+=("$name=$(file_of "$name" "$recipe")"); done < list.tsv
own='learned:policies/{matrix}.safetensors' settled='learned:settled/{matrix}.safetensors' carried=learned:${TRANSFER:-mesh2e1.safetensors} constant=learned:constant64.safetensors,learned:constant8.safetensors
unguarded=(--option guard=off --option stopping=paper --option column-sums=off --option ordering=natural --engine paper)
bench() { # NAME SECONDS options
  local name=$1 total=$2
  shift 2
  ./bench_gpu_cg --out "$out/$name.json" --commit "${COMMIT:-}" --total-seconds "$total" "$@" > "$out/$name.txt" 2>&1
  say "$name: $?, $(grep -c '"matrix"' "$out/$name.json") rows"
}
bench settle 6 --pairs 3 --seconds 0.5 --peers 0 --option ordering=natural --engine paper --policies "fixed:f64,$own" "${given[@]}"
# Columns of the program's table: matrix, policy, n, nnz, iterations, ms.
while IFS=$'\t' read -r name recipe; do
  [ -e "policies/$name.safetensors" ] || continue
  if awk -v m="$name" '$1 == m && $2 == "fixed:f64" { f = $6 } $1 == m && $2 ~ /^learned/ { l = $6 } END { exit !(f > 0 && l > 0 && l < 0.99 * f) }' "$out/settle.txt"
  then cp "policies/$name.safetensors" "settled/$name.safetensors"; else cp constant64.safetensors "settled/$name.safetensors"; fi
  cmp -s constant64.safetensors "settled/$name.safetensors" || say "$name keeps its policy"
done < list.tsv
cp settled/*.safetensors "$out/settled/"
bench cg 14 --pairs 3 --seconds 2.5 "${unguarded[@]}" --policies "fixed:f64,$own,$settled,$carried,$constant,rule,fixed:f32,fixed:bf16,budget" "${given[@]}"
bench product 6 --pairs 5 --seconds 1 --policies fixed:f64,auto "${given[@]}"
bench jacobi 5 --pairs 3 --seconds 1 --precond jacobi "${unguarded[@]}" --policies "fixed:f64,$own,$settled" "${given[@]:0:$cores}"
bench guarded 6 --pairs 3 --seconds 1 --peers 0 --option ordering=natural --engine paper --policies "fixed:f64,$own,$settled,$carried,rule,fixed:f32,fixed:bf16,budget" "${given[@]}"
grep -hE 'error|cannot|not valid' "$out"/*.txt | head -5
