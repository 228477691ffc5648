#!/bin/sh
# Write the pages under docs/ that are made from the source: docs/generators.md from the rows in src/gen/, docs/halftone.1
# from the options. The tests unit_gen_docs and cli_usage say when this is due. SPDX-License-Identifier: BSD-3-Clause
set -eu
cd "$(dirname "$0")/.."
cmake --preset release -DHALFTONE_TESTS=ON >/dev/null
cmake --build build --target unit_gen_docs halftone_cli >/dev/null
HALFTONE_WRITE_DOCS=1 HALFTONE_SOURCE="$PWD" "$(find build -name unit_gen_docs -type f -perm -u+x | head -n 1)"
build/halftone help --man >docs/halftone.1
