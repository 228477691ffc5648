#!/usr/bin/env bash
# Install what is missing, and nothing else, with apt-get (Debian 12 and its relatives).
# usage: tools/setup.sh build|test|ci   SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail

build="gcc libc6-dev make cmake zlib1g-dev libjansson-dev"
test="$build libcmocka-dev libopenblas-dev liblapacke-dev python3-scipy pkg-config"
ci="$test g++ git clang clang-format-14 clang-tidy-14 libclang-rt-14-dev libomp-dev binutils shellcheck"
case "${1:-}" in
  build) wanted=$build ;;
  test) wanted=$test ;;
  ci) wanted=$ci ;;
  *) echo "usage: tools/setup.sh build|test|ci" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null; then
  echo "setup: this is not a Debian system; it should have (Debian's names): $wanted"
  exit 0
fi
missing=""
for package in $wanted; do
  dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q '^install ok installed$' || missing="$missing $package"
done
if [ -z "$missing" ]; then
  echo "setup: nothing is missing"
  exit 0
fi

echo "setup: installing$missing"
run=""
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "setup: not root, and there is no sudo: as root, run: apt-get install$missing" >&2; exit 1; }
  run=sudo
fi
export DEBIAN_FRONTEND=noninteractive
# The package lists may be absent or old: refresh them once, then install.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086
if ! { $run apt-get -q update && $run apt-get -q install -y --no-install-recommends $missing; } >"$log" 2>&1 </dev/null; then
  tail -n 20 "$log" >&2
  echo "setup: apt-get failed; install these by hand:$missing" >&2
  exit 1
fi
