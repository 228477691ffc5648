#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What gpu_batch.sh needs besides the programs: list.tsv from the rows of a set, files of real matrices, and policies that always say the same.

usage: bench/evocg/gpu_prepare.py FOLDER NETWORK.safetensors [--set gpu] [--only NAME,...] [--matrices FOLDER]
constantN: the network, made to say FP64, looking every N iterations; kept64, kept32 and kept16 stand for the level, and no network is asked.
"""
import shutil
from common import *

CONSTANTS = {"constant64": dict(interval=64), "constant8": dict(interval=8), "constant4096": dict(interval=4096), "kept64": dict(chosen="fixed:f64"), "kept32": dict(chosen="fixed:f32"), "kept16": dict(chosen="fixed:bf16")}


def main():
    p = parser(__doc__)
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("network")
    args = p.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for name, way in CONSTANTS.items(): change_policy(args.network, args.folder / f"{name}.safetensors", 0, **dict(dict(chosen="learned"), **way))
    lines = []
    for c in cases(args):
        file = not c["file"] and made.here(c["recipe"])
        if file: made.write(args.halftone, c["recipe"], args.folder / f"{c['name']}.npz")
        if c["file"]: shutil.copy(c["file"], args.folder)
        lines.append("\t".join([c["name"], pathlib.Path(c["file"]).name if c["file"] else f"{c['name']}.npz" if file else c["recipe"], c["policy"], "large" if "large" in c["sets"] else "small"]))
    lines.sort(key=lambda l: l.split("\t")[2] != "-") # their own first
    (args.folder / "list.tsv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__": main()
