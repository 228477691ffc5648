#!/usr/bin/env bash
# Install into an empty folder, then build and run an example against that tree alone: by CMake, by pkg-config, and after
# the tree was moved. usage: test_install.sh BUILD_FOLDER   SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
build=$(realpath "$1")
source=$(realpath "$(dirname "$0")/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "install: $*"; exit 1; }

DESTDIR=$work/stage cmake --install "$build" --prefix /opt/halftone >"$work/log" || { cat "$work/log"; fail 'cmake --install failed'; }
mv "$work/stage/opt/halftone" "$work/moved" # no file may know where it was installed
tree=$work/moved
library=$(find "$tree" -name 'libhalftone.so')
[ -L "$library" ] || fail 'no libhalftone.so'
version=$(sed -n 's/^#define HT_VERSION_[A-Z]* //p' "$tree/include/halftone/version.h" | paste -sd.)
[ -f "$library.$version" ] || fail "no libhalftone.so.$version"
readelf -d "$library" | grep -q "SONAME.*\[libhalftone.so.${version%.*}\]" || fail "the SONAME is not libhalftone.so.${version%.*}"
[ -f "$tree/share/man/man1/halftone.1" ] || fail 'no manual page'
[ -n "$(find "$tree" -name LICENSE)" ] || fail 'no licence'
for header in "$source"/include/halftone/*; do
  cmp -s "$header" "$tree/include/halftone/$(basename "$header")" || fail "the header $(basename "$header") is missing or differs"
done
if grep -rIl "$source" "$tree"; then fail 'these files name the source folder'; fi

check() { # HOW PROGRAM
  local output
  output=$(LD_LIBRARY_PATH=$(dirname "$library") "$2" "$source/examples/data/heat_10x10.mtx") || fail "the example built $1 failed: $output"
  grep -q '^converged: ' <<<"$output" || fail "the example built $1 printed: $output"
  echo "install: built $1: $(tail -n 1 <<<"$output")"
}

mkdir "$work/user"
cp "$source/examples/00_solve_file.c" "$work/user/main.c"
cat >"$work/user/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(halftone ${version%.*} REQUIRED)
add_executable(user main.c)
target_link_libraries(user PRIVATE halftone::halftone)
CMAKE
{ cmake -S "$work/user" -B "$work/user/build" -DCMAKE_PREFIX_PATH="$tree" && cmake --build "$work/user/build"; } >"$work/log" 2>&1 ||
  { cat "$work/log"; fail 'find_package(halftone) or the build with it failed'; }
check 'by CMake' "$work/user/build/user"

# The README's program as it stands there, between ```c and ```, with a main that calls it.
# shellcheck disable=SC2016
sed -n '/^```c$/,/^```$/{/^```/d;p}' "$source/README.md" >"$work/user/readme.c"
cat >>"$work/user/readme.c" <<'C'

int main(void) {
  const int64_t row_start[] = {0, 2, 4};
  const int32_t columns[] = {0, 1, 0, 1};
  const double values[] = {2, -1, -1, 2}, b[] = {1, 1};
  double x[2] = {0, 0};
  return !(solve(2, row_start, columns, values, b, x) && x[0] > 0.99 && x[0] < 1.01 && x[1] > 0.99 && x[1] < 1.01);
}
C
cc -std=c11 -Wall -Wextra -Werror -I"$tree/include" "$work/user/readme.c" "$library" -o "$work/user/readme" 2>"$work/log" ||
  { cat "$work/log"; fail "the README's C program does not compile and link"; }
LD_LIBRARY_PATH=$(dirname "$library") "$work/user/readme" >"$work/log" || { cat "$work/log"; fail "the README's C program does not solve"; }
echo "install: the README's program: $(cat "$work/log")"

if command -v pkg-config >/dev/null; then
  export PKG_CONFIG_PATH=$(dirname "$(find "$tree" -name halftone.pc)")
  [ "$(pkg-config --modversion halftone)" = "$version" ] || fail "pkg-config gives the version $(pkg-config --modversion halftone)"
  # shellcheck disable=SC2046
  cc -std=c11 "$work/user/main.c" $(pkg-config --cflags --libs halftone) -o "$work/user/by_pkg_config"
  check 'by pkg-config' "$work/user/by_pkg_config"
fi
if [ -x "$tree/bin/halftone" ]; then
  "$tree/bin/halftone" solve "$source/examples/data/heat_10x10.mtx" >"$work/log" || { cat "$work/log"; fail 'the installed command failed'; }
  echo 'install: the command runs'
fi
