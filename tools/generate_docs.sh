#!/bin/sh
# Write the pages under docs/ that are made from the source: docs/generators.md from the rows in src/gen/. The test
# unit_gen_docs says when this is due. SPDX-License-Identifier: BSD-3-Clause
set -eu
cd "$(dirname "$0")/.."
cmake --preset release -DHALFTONE_TESTS=ON >/dev/null
cmake --build build --target unit_gen_docs >/dev/null
HALFTONE_WRITE_DOCS=1 HALFTONE_SOURCE="$PWD" "$(find build -name unit_gen_docs -type f -perm -u+x | head -n 1)"
