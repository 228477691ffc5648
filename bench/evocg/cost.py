#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sec. 4.8, Fig. 10: what the policy costs in the loop, what Tile-CSC costs in memory, what training costs.

usage: bench/evocg/cost.py [--backend cpu|cuda] [--matrices FOLDER] ...
The policy's cost: FP64 CG against FP64 CG in which the trained network decides every K* iterations, but for a bias that makes it say FP64
throughout. Products are the same, so that the difference is inference, what it makes the loop wait for, and a product that asks each tile's
level. More looks of the same network tell the first from the last.
"""
from common import *

OUTLIER = 3.0  # times CSR


def main(argv=None):
    args = parse(parser(__doc__), argv)
    rows = cases(args)
    got, memory, over, lines, often, looks = by_matrix(measure(args, "cg", ["f64", "constant", "constant64", "constant8", "constant4096"], rows)), [], [], [], [], []
    never, seldom = [], []
    split = {r["matrix"]: r for r in measure(args, "product", ["f64", "auto"], rows) if r["contestant"] == "f64"}
    for name, g in got.items():
        f, t, s = g.get("f64"), training(args, name), split.get(name)
        if not f: continue
        memory.append(f["bytes_matrix"] / f["bytes_csr"])
        c, usual, eight, no = (g.get(k) if g.get(k, {}).get("pairs") != 1 else None for k in ("constant", "constant64", "constant8", "constant4096"))
        if no: never.append(no["loop_s"] / f["loop_s"] - 1)
        if c: over.append(max(c["loop_s"] / f["loop_s"] - 1, 0))
        if eight: often.append(max(eight["loop_s"] / f["loop_s"] - 1, 0))
        if usual: seldom.append(max(usual["loop_s"] / f["loop_s"] - 1, 0))
        if usual and eight: looks.append(max((eight["loop_s"] - usual["loop_s"]) / f["loop_s"] / (64 / 8 - 1), 0))
        lines.append([name, f["kind"], f["n"], f["nnz"], signed(c["loop_s"] / f["loop_s"] - 1) if c else "-", signed(eight["loop_s"] / f["loop_s"] - 1) if eight else "-", signed(no["loop_s"] / f["loop_s"] - 1) if no else "-", times(memory[-1]), times(s["bytes_matrix"] / s["bytes_csr"]) if s else "-", f"{t['time_s']:.0f} s, {t['episodes']} episodes" if t else "-", t["interval"] if t else "-"])
    less, t = [m for m in memory if m < OUTLIER], training(args, args.transfer)
    text = beside([["policy, mean", "1.09 %", percent(mean(over), 2)], ["policy, median", "0.60 %", percent(median(over), 2)], ["below 1 %, below 2 %", "31, 38 of 47", f"{sum(o < 0.01 for o in over)}, {sum(o < 0.02 for o in over)} of {len(over)}"],
                   ["the same looking every 64 iterations, mean, median", "-", f"{percent(mean(seldom), 2)}, {percent(median(seldom), 2)}"],
                   ["the same looking every 8 iterations, mean, median", "-", f"{percent(mean(often), 2)}, {percent(median(often), 2)}"],
                   ["the same looking at the start alone (reading levels by block), mean, median", "-", f"{percent(mean(never), 2)}, {percent(median(never), 2)}"],
                   ["the looks alone every 64 iterations, from the difference, mean, median", "-", f"{percent(mean(looks), 2)}, {percent(median(looks), 2)}"],
                   ["Tile-CSC by CSR, without outliers", "1.84 (40 of 47)", f"{times(sum(less) / len(less) if less else float('nan'))} ({len(less)} of {len(memory)})"], ["outliers, at least 3 times CSR", "7, sizes not told", " ".join(times(m) for m in sorted(memory) if m >= OUTLIER) or "none"],
                   ["split storage by CSR (ours)", "-", times(mean([s["bytes_matrix"] / s["bytes_csr"] for s in split.values()]))],
                   [f"training on {args.transfer}", "below 15 min", f"{t['time_s']:.0f} s, {t['episodes']} episodes" if t else "-"], ["training on the matrix itself", "several hours", "see the rows"]])
    publish(args, "cost", "Costs (Sec. 4.8, Fig. 10)", [text, table(["matrix", "kind", "n", "nnz", "policy", "looking every 8 it.", "looking once", "Tile-CSC / CSR", "split / CSR", "training", "K*"], lines)], dict(overhead=over, seldom=seldom, levels=never, looks=looks, memory=memory, rows=lines))


if __name__ == "__main__": main()
