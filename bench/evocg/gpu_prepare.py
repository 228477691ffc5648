#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What gpu_batch.sh needs besides the programs: list.tsv from the rows of a set, files of real matrices, and policies that always say the same.

usage: bench/evocg/gpu_prepare.py FOLDER NETWORK.safetensors [--set gpu] [--only NAME,...] [--matrices FOLDER] [--policies FOLDER]
constantN: the network, made to say FP64, looking every N iterations; kept64, kept32 and kept16 stand for the level, and no network is asked.
Policies that there are, and what was told of their training, go along, and those of the reward `time` that are in OUT/time.
NETWORK is what is carried over, too, should it not be trained anew there (TRANSFER, and TRANSFER-64, which looks every 64 iterations).
"""
import shutil
from common import *

CONSTANTS = {"constant1024": dict(interval=1024), "constant64": dict(interval=64), "constant8": dict(interval=8), "constant4096": dict(interval=4096), "kept64": dict(chosen="fixed:f64"), "kept32": dict(chosen="fixed:f32"), "kept16": dict(chosen="fixed:bf16")}


def effort(case):
    """Seconds of training by the paper's protocol, roughly: what is learned soon is learned first."""
    n, nnz, iterations = (float(case[k] or usual) for k, usual in (("n", 5e4), ("nnz", 1e6), ("iterations", 500)))
    return iterations * (7e-3 + 5e-9 * nnz + 6e-8 * n)


def put(args, case):
    """Into the folder, unless `halftone gen` makes it there. What list.tsv says of it: the file's name or the recipe."""
    if case["file"]: return pathlib.Path(shutil.copy(case["file"], args.folder)).name
    if not made.here(case["recipe"]): return case["recipe"]
    made.write(args.halftone, case["recipe"], args.folder / f"{case['name']}.npz")
    return f"{case['name']}.npz"


def main():
    p = parser(__doc__)
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("network")
    args = p.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for name, way in CONSTANTS.items(): change_policy(args.network, args.folder / f"{name}.safetensors", 0, **dict(dict(chosen="learned"), **way))
    shutil.copy(args.network, args.folder / f"{args.transfer}.safetensors")
    change_policy(args.network, args.folder / f"{args.transfer}-64.safetensors", interval=64)
    out = pathlib.Path(args.out)
    for folder, source in (("policies", pathlib.Path(args.policies or out / "policies")), ("time", out / "time")):
        if source.exists(): shutil.copytree(source, args.folder / folder, dirs_exist_ok=True)
    carried = cases(argparse.Namespace(**dict(vars(args), only=args.transfer)))[0]
    if put(args, carried) == carried["recipe"]: subprocess.run([args.halftone, "gen", *shlex.split(carried["recipe"]), "-o", args.folder / f"{args.transfer}.npz", "--quiet"], check=True)
    lines = ["\t".join([c["name"], put(args, c), c["policy"], "large" if "large" in c["sets"] else "small"]) for c in sorted(cases(args), key=effort)]
    (args.folder / "list.tsv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__": main()
