#!/usr/bin/env bash
# Every public header compiles alone, as C11 and as C++17, with warnings as errors. SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
cd "$(dirname "$0")/.."
count=0
for header in include/halftone/*.h; do
  name=halftone/$(basename "$header")
  for language in "gcc -x c -std=c11" "g++ -x c++ -std=c++17"; do
    # shellcheck disable=SC2086
    $language -Wall -Wextra -Wpedantic -Werror -fsyntax-only -Iinclude - <<<"#include \"$name\""
    count=$((count + 1))
  done
done
echo "headers: $count compilations"
