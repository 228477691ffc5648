#!/usr/bin/env bash
# The GPU part of the experiments in one go, for a machine that is lent for some minutes: trains by the paper's reward on the device, then compares.
# usage: gpu_batch.sh FOLDER OUT
# FOLDER has halftone, bench_gpu_cg, what gpu_prepare.py makes, a policy TRANSFER.safetensors that is carried over, and list.tsv: matrix, recipe or
# file, the matrix whose policy it takes ("-": its own), small or large, in the order in which is trained. In policies/ are policies for what cannot
# be trained in time, in time/ those of the reward `time` (saving.py). collect.py reads OUT, in which results stand as soon as they are there; what
# matters most comes first. settled/ receives, for each matrix, what was fastest behind the guard: its policy, that of time/, or a level throughout.
# environment: TRAIN (options of halftone train), EPISODES (1000), TRAIN_JOBS (trainings side by side, 3), TRAIN_UNTIL (no training is begun after so
# many seconds, and none lasts longer, 105; 0: none), TEACH (the matrices that are trained, in this order, each NAME or NAME:SECONDS; all that have a
# policy of their own, in the list's, each at most 14 s), UNTIL (no comparison is begun after so many seconds, 340), SCALE (of the seconds of the
# comparisons, 1), RUN (the comparisons that are made, by name; all), ONLY (their matrices; all), PROGRAMS and BESIDE (other libraries, NAME=COMMAND ...,
# and the matrices on which they run, too; none), TRANSFER (mesh2e1), COMMIT
# SPDX-License-Identifier: BSD-3-Clause
set -uo pipefail
cd "$1" && out=$2 scale=${SCALE:-1} carried=${TRANSFER:-mesh2e1} episodes=${EPISODES:-1000} until=${TRAIN_UNTIL:-105} jobs=${TRAIN_JOBS:-3}
say() { echo "[$SECONDS s] $*"; }
times() { awk -v a="$1" -v b="$2" 'BEGIN { print a * b }'; }
mkdir -p "$out/policies" m policies time settled trained
: > "$out/settled.txt"

while IFS=$'\t' read -r name recipe _; do
  [ -e "$recipe" ] || [ -e "m/$name.npz" ] || OMP_NUM_THREADS=4 timeout 60 ./halftone gen $recipe -o "m/$name.npz" --quiet < /dev/null &
done < list.tsv
wait
say "generated $(ls m | wc -l)"
file_of() { [ -e "m/$1.npz" ] && echo "m/$1.npz" || echo "$2"; }

# ---- Training ----

halftone_train() { # SECONDS FILE NAME options; without --foreground the signal comes twice, and the second ends it with nothing kept
  OMP_NUM_THREADS=4 timeout --foreground -k 8 "$1" ./halftone train "$2" -o "trained/$3.safetensors" --reward paper --patience 0 --compete no ${TRAIN:-} --backend "${BACKEND:-cuda}" --json "${@:4}" \
    > "$out/policies/$3.json" 2> "$out/policies/$3.err" < /dev/null
}

# What is cut off is judged all the same, from its state: that is what chooses K*.
train() { # NAME FILE SECONDS
  if ! halftone_train "$3" "$2" "$1" --episodes "$episodes" --save "trained/$1.state" && [ -s "trained/$1.state" ]; then
    mv "$out/policies/$1.json" "$out/policies/$1.cut.json"
    halftone_train 15 "$2" "$1" --episodes 1 --resume "trained/$1.state"
  fi
  rm -f "trained/$1.state"
  if [ -e "trained/$1.safetensors" ]; then cp "trained/$1.safetensors" policies/; else rm -f "$out/policies/$1".{cut.,}json; fi
}

# Its share of the time that is left, but for what its start and its judgement take, and a fifth more, since many need less.
share() { # matrices that are left, this one included; seconds that it is given, if any
  local left=$((until - SECONDS))
  [ -z "$2" ] || { echo $(($2 < left ? $2 : left)); return; }
  awk -v left="$left" -v more="$1" -v jobs="$jobs" 'BEGIN { s = 1.2 * jobs * left / more - 2; print (s < 2.5 ? 2.5 : s > 14 ? 14 : s) }'
}

# Whether NAME is asked for by a list, of which an empty one has all.
among() { [ -z "$2" ] || [[ " $2 " = *" $1 "* ]]; }
given=() large=() taught=()
declare -A files
while IFS=$'\t' read -r name recipe whose size; do
  file=$(file_of "$name" "$recipe") files[$name]=$file
  [ "$whose" = - ] && [ -z "${TEACH:-}" ] && taught+=("$name=$file")
  among "$name" "${ONLY:-}" || continue
  [ "$size" = large ] && large+=("$name=$file") || given+=("$name=$file")
done < list.tsv
declare -A granted
for l in ${TEACH:-}; do
  name=${l%%:*} taught+=("${l%%:*}=${files[${l%%:*}]}")
  [ "$l" = "$name" ] || granted[$name]=${l#*:}
done
if [ "$until" -gt 0 ]; then
  mesh=$([ -n "${TEACH:-}" ] || ls "$carried".mtx.gz "$carried".npz 2> /dev/null | head -1)
  for interval in 0 64; do # the second differs in its interval alone
    name=$carried$([ $interval = 0 ] || echo "-$interval")
    [ -n "$mesh" ] && halftone_train 15 "$mesh" "$name" --episodes "$episodes" --interval $interval && cp "trained/$name.safetensors" .
  done
  # A training leaves the card idle half of the time where the matrix is small.
  for i in "${!taught[@]}"; do
    [ "$i" -lt "$jobs" ] || wait -n
    [ $SECONDS -lt "$until" ] || { say "not trained: ${taught[*]:i}"; break; }
    name=${taught[i]%%=*}
    train "$name" "${taught[i]#*=}" "$(share $((${#taught[@]} - i)) "${granted[$name]:-}")" &
  done
  wait
  echo "$jobs" > "$out/side_by_side"
fi
while IFS=$'\t' read -r name _ whose _; do # after all are trained
  [ "$whose" = - ] && continue
  for folder in policies time; do [ -e "$folder/$whose.safetensors" ] && cp "$folder/$whose.safetensors" "$folder/$name.safetensors"; done
done < list.tsv
cp policies/*.safetensors "$carried"*.safetensors "$out/policies/"
for told in policies/*.json; do # of those that were brought along
  [ -e "$told" ] && [ ! -e "$out/$told" ] && cp "$told" "$out/policies/"
done
say "policies: $(ls policies/*.safetensors | wc -l), trained: $(ls trained/*.safetensors 2> /dev/null | wc -l), cut off: $(ls "$out"/policies/*.cut.json 2> /dev/null | wc -l)"

# ---- Comparisons ----

bench() { # NAME SECONDS options
  local name=$1
  among "$name" "${RUN:-}" && [[ ${!#} = *=* ]] || return 1 # asked for, and on a matrix at least
  [ $SECONDS -lt "${UNTIL:-340}" ] || { say "$name: left out"; return 1; }
  timeout 120 ./bench_gpu_cg --out "$out/$name.json" --commit "${COMMIT:-}" --total-seconds "$(times "$2" "$scale")" "${@:3}" > "$out/$name.txt" 2>&1 < /dev/null
  say "$name: $?, $(grep -c '"matrix"' "$out/$name.json") rows"
}
own='learned:policies/{matrix}.safetensors' saving='learned:time/{matrix}.safetensors' settled='learned:settled/{matrix}.safetensors'
transferred=learned:$carried.safetensors,learned:$carried-64.safetensors
guarded=(--option ordering=natural --engine paper)
unguarded=(--option guard=off --option stopping=paper --option column-sums=off "${guarded[@]}")
jacobi=(--precond jacobi)

# The fastest of the learned ones and of levels throughout that converges behind the guard, by more than 1 % against FP64, with at most twice its error: as the
# competition of `halftone train` chooses.
pick() { # RESULTS; prints each matrix and its policy
  python3 - "$1" << 'END'
import json, sys
rows = {}
for r in json.load(open(sys.argv[1]))["rows"]:
    if r["outcome"] == "converged": rows.setdefault(r["matrix"], {})[r["policy"]] = r
for name, by in rows.items():
    f64 = by.get("fixed:f64")
    if not f64: continue
    may = {p: r for p, r in by.items() if p.startswith(("learned:", "fixed:")) and (r["error_known"] or 0) <= 2 * max(f64["error_known"] or 0, 1e-14)}
    print(name, min(may, key=lambda p: may[p]["time_s"] * (0.99 if p == "fixed:f64" else 1)))
END
}
settle() { # NAME of the comparison
  pick "$out/$1.json" | while read -r name who; do
    case $who in
      fixed:f64) from=kept64 ;;
      fixed:f32) from=kept32 ;;
      fixed:bf16) from=kept16 ;;
      *) from=${who#learned:} from=${from%%/*}/$name ;;
    esac
    cp "$from.safetensors" "settled/$name.safetensors" && echo "$name $who" >> "$out/settled.txt"
  done
  say "settled: $(cut -d' ' -f2 "$out/settled.txt" | sort | uniq -c | tr -s ' \n' ' ')"
}
# Beside other libraries: some of which the policies are the paper's in full, of all sizes.
programs=() beside=()
for p in ${PROGRAMS:-}; do programs+=(--program "$p"); done
for name in ${BESIDE:-jnlbrng1 Dubcova1 Dubcova2 wathen100 bodyy4 qa8fm thermomech_dM bundle1 s27-64-lognormal s27-96-lognormal}; do
  [ ${#programs[@]} -gt 0 ] && among "$name" "${ONLY:-}" && beside+=("$name=${files[$name]}")
done
# Of the large ones: thermal2 in its natural order takes 11 s a solve on tiles, and is left to halftone's own engine; HBM class with Jacobi.
tiled=() hbm=()
for l in "${large[@]}"; do
  [ "${l%%=*}" = thermal2 ] || tiled+=("$l")
  case ${l%%=*} in s27-* | s7-* | elasticity-*) hbm+=("$l") ;; esac
done

bench cg 50 --peers 0 --pairs 3 --seconds 3 "${unguarded[@]}" --policies "fixed:f64,$own,learned:constant1024.safetensors,rule,fixed:f32,fixed:bf16" "${given[@]}"
bench guarded 50 --peers 0 --pairs 3 --seconds 3 "${guarded[@]}" --policies "fixed:f64,$own,$saving,rule,fixed:f32,fixed:bf16,budget" "${given[@]}" && settle guarded
bench large-cg 34 --peers 0 --pairs 3 --seconds 3.7 "${unguarded[@]}" --policies "fixed:f64,$own,fixed:f32,fixed:bf16" "${tiled[@]}"
bench large-guarded 34 --peers 0 --pairs 3 --seconds 3.7 "${guarded[@]}" --policies "fixed:f64,$own,fixed:f32,fixed:bf16" "${tiled[@]}" && settle large-guarded
bench large-jacobi 14 --pairs 3 --seconds 1.5 "${jacobi[@]}" "${unguarded[@]}" --policies "fixed:f64,$own" "${hbm[@]}"
bench large-jacobi-guarded 14 --peers 0 --pairs 3 --seconds 1.5 "${jacobi[@]}" "${guarded[@]}" --policies "fixed:f64,$own,$settled" "${hbm[@]}"
bench jacobi-product 24 --pairs 5 --seconds 0.7 "${jacobi[@]}" --policies fixed:f64,auto,learned "${given[@]}"
bench large-jacobi-product 48 --pairs 3 --seconds 5 "${jacobi[@]}" --policies fixed:f64,auto,learned "${large[@]}"
bench settled-guarded 20 --peers 0 --pairs 3 --seconds 1.2 "${guarded[@]}" --policies "fixed:f64,$settled" "${given[@]}" "${hbm[@]}"
bench jacobi 16 --pairs 3 --seconds 1.2 "${jacobi[@]}" "${unguarded[@]}" --policies "fixed:f64,$own" "${given[@]}"
bench transfer 24 --peers 0 --pairs 3 --seconds 1.5 "${unguarded[@]}" --policies "fixed:f64,$transferred" "${given[@]}"
bench product 16 --pairs 5 --seconds 0.35 --policies fixed:f64,auto "${given[@]}"
bench jacobi-guarded 14 --peers 0 --pairs 3 --seconds 0.8 "${jacobi[@]}" "${guarded[@]}" --policies "fixed:f64,$own,$settled" "${given[@]}"
bench large-product 24 --pairs 3 --seconds 3 --policies fixed:f64,auto "${large[@]}"
bench transfer-guarded 20 --peers 0 --pairs 3 --seconds 1 "${guarded[@]}" --policies "fixed:f64,$transferred" "${given[@]}"
bench large-transfer 34 --peers 0 --pairs 3 --seconds 5 "${unguarded[@]}" --policies "fixed:f64,learned:$carried.safetensors" "${tiled[@]}"
bench large-transfer-guarded 34 --peers 0 --pairs 3 --seconds 5 "${guarded[@]}" --policies "fixed:f64,learned:$carried.safetensors" "${tiled[@]}"
bench peers 45 "${programs[@]}" --pairs 3 --seconds 1.5 "${unguarded[@]}" --policies "fixed:f64,$own" "${beside[@]}"
bench peers-product 45 "${programs[@]}" --pairs 3 --seconds 1.5 --policies fixed:f64,auto "${beside[@]}"
bench constants 16 --peers 0 --pairs 3 --seconds 0.5 "${unguarded[@]}" --policies "fixed:f64,learned:constant64.safetensors,learned:constant8.safetensors,learned:constant4096.safetensors" "${given[@]}"
grep -hE 'error|cannot|not valid' "$out"/*.txt | sort | uniq -c | head -8
