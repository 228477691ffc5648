#!/usr/bin/env bash
# All static checks; stops at none, fails when any failed. usage: tools/check.sh [CHECK ...]   SPDX-License-Identifier: BSD-3-Clause
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
jobs=$(nproc)

check_format() { # the formatter's version is pinned: another one formats differently
  local wrong
  wrong=$(git ls-files -co --exclude-standard '*.c' '*.h' '*.cu' '*.cuh' | xargs clang-format-14 --dry-run -Werror 2>&1 | sed -n 's/^\([^:]*\):.*error:.*/\1/p' | sort -u)
  [ -z "$wrong" ] || { printf "not formatted ('make format' does it):\n%s\n" "$wrong"; return 1; }
  echo "format: clean"
}
check_layers() { python3 tools/check_layers.py; }
check_words() { bash tools/check_words.sh; }
check_headers() { bash tools/check_headers.sh; }
check_symbols() { cmake --preset release >/dev/null && cmake --build build --parallel "$jobs" --target halftone >/dev/null && bash tools/check_symbols.sh build; }
check_scripts() { # every script parses; shellcheck too where it is installed
  local script
  for script in .ci/run tools/*.sh tests/*/*.sh; do
    [ -f "$script" ] || continue
    bash -n "$script" || return 1
  done
  if command -v shellcheck >/dev/null; then shellcheck .ci/run tools/*.sh || return 1; fi
  python3 -m py_compile tools/*.py && echo "scripts: clean"
}
check_tidy() { # with clang's own compile database: gcc's flags are not all known to it; one file a run: clang 14 mixes up va_lists else
  cmake --preset clang -DHALFTONE_TESTS=OFF >/dev/null || return 1
  local left_out='^$'
  grep -q src/backend/cuda/ build-clang/compile_commands.json || left_out='^src/backend/cuda/' # no nvcc: no cuda.h either
  git ls-files -co --exclude-standard 'src/*.c' 'cli/*.c' 'examples/*.c' | grep -v "$left_out" |
    xargs -P "$jobs" -n 1 clang-tidy-14 -p build-clang --quiet --warnings-as-errors='*' 2>&1 | grep -v ' warnings\? generated\.$'
  [ "${PIPESTATUS[2]}" -eq 0 ] && echo "tidy: clean"
}

[ $# -gt 0 ] || set -- format layers words headers scripts symbols tidy
failed=""
for check in "$@"; do
  printf '\n== check: %s\n' "$check"
  "check_$check" || failed="$failed $check"
done
if [ -n "$failed" ]; then
  printf '\nfailed:%s\n' "$failed"
  exit 1
fi
printf '\nall checks passed\n'
