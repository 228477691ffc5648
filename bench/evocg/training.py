#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Secs. 3.2.3, 4.1 and 4.8: what training on one small matrix leads to, by the paper's hyperparameters and by others.

usage: bench/evocg/training.py [--transfer mesh2e1] [--episodes 1000] [--threads 1] ...
The paper does not say whether 1,024 transitions are iterations or tiles, whether a tile's advantage has its own cost or the mean over the tiles,
whether a transition's loss is the mean over its tiles or the sum, and what C(a) is; each reading is tried. Solves at the end take the likeliest actions, without
guard or replacement.
"""
from common import *

FAST = "--reward paper --credit shared --learning-rate 1e-3 --entropy-weight 0.002"
WAYS = {"paper, each tile its own cost": "--reward paper", "the same, C(a) in bytes": "--reward paper --tile-cost 8", "cost shared": "--reward paper --credit shared", "cost shared, transitions are tiles": None,
        "cost shared, loss summed over tiles": "--reward paper --credit shared --loss sum", "cost shared, C(a) in bytes": "--reward paper --credit shared --tile-cost 8",
        "cost shared, loss summed, C(a) in bytes": "--reward paper --credit shared --loss sum --tile-cost 8", "cost shared, learning rate 1e-3, entropy 0.002": FAST,
        "time, without replacement": "--reward time --format tilecsc --rhs ones --replace no", "time, residuals made true": "--reward time"}


def options(way, tiles):
    return WAYS[way] or f"--reward paper --credit shared --update {max(1024 // tiles, 1)} --minibatch {max(128 // tiles, 1)}"


def main(argv=None):
    args = parse(parser(__doc__), argv)
    case = cases(argparse.Namespace(**dict(vars(args), only=args.transfer)))[0]
    path, lines, data = matrix(args, case), [], {}
    tiles = -(-load(path).shape[0] // 64)
    for way in WAYS:
        file = args.out / f"training-{list(WAYS).index(way)}.json"
        if not file.exists() and not args.measured and not late(args):
            r = subprocess.run([args.halftone, "train", path, "-o", file.with_suffix(".safetensors"), "--episodes", str(args.episodes), "--threads", str(args.threads), *shlex.split(options(way, tiles)), "--json"], capture_output=True, text=True)
            if r.returncode: print(r.stderr, file=sys.stderr); continue
            file.write_text(r.stdout)
        if not file.exists(): continue
        t = data[way] = told(file)
        lines.append([way, t["episodes"], t["updates"], f"{t['return_first']:.4g}", f"{t['return_last']:.4g}", f"{t['entropy']:.2f}", f"{t['iterations']} / {t['iterations_f64']}", " / ".join(percent(t[k]) for k in ("share_f64", "share_f32", "share_16")), f"{t['residual_true']:.1e}", t["interval"], f"{t['time_s']:.0f}"])
    first = data.get("paper, each tile its own cost")
    text = beside([[f"training on {args.transfer}", "below 15 min, \"converges within 1000 episodes\"", f"{first['time_s']:.0f} s, {first['episodes']} episodes" if first else "-"]])
    publish(args, "training", f"Training on {args.transfer} (Secs. 3.2.3, 4.8)", [text, table(["training", "episodes", "updates", "first return", "last return", "entropy", "it. / FP64", "FP64 / FP32 / 16 bits", "true residual", "K*", "s"], lines)], dict(ways=data))


if __name__ == "__main__": main()
