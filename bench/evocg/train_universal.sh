#!/bin/bash
# A policy for all matrices, as the library carries one, from nothing: generates the matrices that it learns from, trains, and writes the file.
# The same seed gives the same bits on any machine that runs the same kernels; the weights of the library's are of commit 9952fd5 (docs/evocg-universal.md). SPDX-License-Identifier: BSD-3-Clause
# usage: bench/evocg/train_universal.sh [HALFTONE] [OUT.safetensors] [train options]
set -euo pipefail
halftone=${1:-build/halftone}
out=${2:-src/policy/universal.safetensors}
shift $(($# < 2 ? $# : 2))
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
files=()
while read -r name recipe; do
  [[ -z $name || $name == \#* ]] && continue
  # shellcheck disable=SC2086 # a recipe is several words
  "$halftone" gen $recipe -o "$folder/$name.npz" >/dev/null
  files+=("$folder/$name.npz")
done <"$(dirname "$0")/train_universal.txt"
"$halftone" train "${files[@]}" --state features --seed 1 --patience 0 --late 0.3 --hidden 16 --learning-rate 4e-3 --max-iterations 1200 --episodes 1000 --compete no "$@" -o "$out"
