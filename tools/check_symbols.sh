#!/usr/bin/env bash
# The shared library shows names that begin with ht_ and nothing else, and no function that would end or print.
# usage: tools/check_symbols.sh [FOLDER WITH libhalftone.so]   SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
library=${1:-build}/libhalftone.so
# gcc gives the lock of a named critical section a name of its own, shared by all libraries of the process.
shown=$(nm -D --defined-only --extern-only "$library" | awk '{print $3}' | sed '/^\.gomp_critical_user_ht_/d')
count=$(grep -c '^ht_' <<<"$shown" || true)
foreign=$(grep -v '^ht_' <<<"$shown" || true)
# assert's helper and the C library's exits: src/ returns a status instead.
forbidden=$(nm -D --undefined-only "$library" | awk '{print $2}' | grep -E '^(exit|_exit|abort|__assert_fail|printf|__printf_chk|puts|putchar|perror)(@|$)' || true)
# Declared in the headers as API and missing in the library.
declared=$(cat include/halftone/*.h | tr '\n' ' ' | grep -oE 'HT_API [^;{]*;' | grep -oE '\bht_[a-z0-9_]+ *\(' | tr -d ' (' | sort -u)
absent=$(comm -23 <(echo "$declared") <(sort -u <<<"$shown"))
extra=$(comm -13 <(echo "$declared") <(grep '^ht_' <<<"$shown" | sort -u))
echo "symbols: $count shown"
status=0
if [ -n "$foreign" ]; then echo "not beginning with ht_: $foreign"; status=1; fi
if [ -n "$forbidden" ]; then echo "the library must not call: $forbidden"; status=1; fi
if [ -n "$absent" ]; then echo "declared in include/halftone and not in the library: $absent"; status=1; fi
if [ -n "$extra" ]; then echo "shown and not declared in include/halftone: $extra"; status=1; fi
exit $status
