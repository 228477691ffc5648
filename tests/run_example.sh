#!/usr/bin/env bash
# Run a program; it must exit with 0 and print a line for each pattern. usage: run_example.sh PATTERNS PROGRAM [ARGUMENT ...]
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
patterns=$1
shift
output=$("$@") || { echo "status $?"; echo "$output"; exit 1; }
echo "$output"
while IFS= read -r pattern; do
  grep -q -- "$pattern" <<<"$output" || { echo "no line matches: $pattern"; exit 1; }
done <<<"$patterns"
