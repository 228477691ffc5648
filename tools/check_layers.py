#!/usr/bin/env python3
"""Layer check: every #include "folder/..." in src/ and cli/ points to the same folder or to one that stands below it.

A backend's own folder (src/backend/NAME/) is included by itself alone; everyone else goes through backend/backend.h.
Examples use the public headers alone.  SPDX-License-Identifier: BSD-3-Clause
"""
import pathlib
import re
import sys

# Each folder with what it may include besides itself and the public headers.
CHAIN = ["base", "backend", "data", "policy", "op", "factor", "precond", "solver"]
ALLOWED = {folder: set(CHAIN[:i]) for i, folder in enumerate(CHAIN)}
ALLOWED["comm"] = {"base"}
for folder in CHAIN[CHAIN.index("data"):]:
    ALLOWED[folder].add("comm")
for folder in ("tune", "train"):
    ALLOWED[folder] = set(CHAIN) | {"comm"}
for folder in ("io", "gen"):
    ALLOWED[folder] = {"base", "backend", "data"}
ALLOWED["cli"] = set(ALLOWED) | {"cli"}

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
ROOT = pathlib.Path(__file__).resolve().parents[1]


def includes(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1)


def complaint(path, target):
    """Why the file at `path` (relative to the root) may not include `target`, or None."""
    if target.startswith("halftone/"):
        return None
    here = path.parts[1] if path.parts[0] == "src" else path.parts[0]
    if here == "examples":
        return "an example includes public headers alone"
    there = pathlib.PurePath(target).parts
    if len(there) < 2:
        return None if here == "cli" else "write the path from src/"
    if there[0] == "backend" and len(there) > 2 and path.parts[:3] != ("src",) + there[:2]:
        return f"backend/{there[1]}/ is private: reach it through backend/backend.h"
    if here not in ALLOWED:
        return f"the folder {here}/ has no place in the order: add it to tools/check_layers.py"
    if there[0] != here and there[0] not in ALLOWED[here]:
        return f"{here}/ stands below {there[0]}/"
    return None


def main():
    files = sorted(p for folder in ("src", "cli", "examples") for p in (ROOT / folder).rglob("*") if p.suffix in (".c", ".h", ".cu", ".cuh"))
    wrong = 0
    for file in files:
        path = file.relative_to(ROOT)
        for number, target in includes(file):
            why = complaint(path, target)
            if why:
                wrong += 1
                print(f'{path}:{number}: #include "{target}": {why}')
    print(f"layers: {len(files)} files, {wrong} wrong")
    return 1 if wrong or not files else 0


if __name__ == "__main__":
    sys.exit(main())
