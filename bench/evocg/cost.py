#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sec. 4.8, Fig. 10: what the policy costs in the loop, what Tile-CSC costs in memory, what training costs.

usage: bench/evocg/cost.py [--backend cpu|cuda] [--matrices FOLDER] ...
The policy's cost: FP64 CG against FP64 CG in which the trained network decides every K* iterations, but for a bias that makes it say FP64
throughout. Products are the same, so that the difference is inference, what it makes the loop wait for, and a product that asks each tile's
level. More looks of the same network tell the first from the last. And each matrix's own policy at its own K* against the level that it reads
throughout, where it does and takes the same iterations: the same products but for the first.
"""
from common import *

OUTLIER = 3.0  # times CSR
THROUGHOUT = 0.97  # of what is read: the first product is at FP64, since a look needs a direction


def own_overhead(g):
    """The level that a matrix's own policy reads throughout, and what the policy costs beside that level fixed; None where it mixes levels or iterations differ."""
    r = g.get("learned")
    for level, share in (("f64", "share_64"), ("f32", "share_32"), ("16", "share_16")):
        fixed = g.get(level)
        if not r or not fixed or r[share] < THROUGHOUT or r["iterations"] != fixed["iterations"] or 1 in (r.get("pairs"), fixed.get("pairs")): continue
        return level, speed(fixed) / speed(r) - 1
    return None


def main(argv=None):
    args = parse(parser(__doc__), argv)
    rows = cases(args)
    whose = {c["name"]: c["policy"] for c in rows}
    got, memory, overhead, lines, often, looks = by_matrix(measure(args, "cg", ["f64", "learned", "f32", "16", "constant", "constant64", "constant8", "constant4096"], rows)), [], [], [], [], []
    never, seldom, own = [], [], []
    split = {r["matrix"]: r for r in measure(args, "product", ["f64", "auto"], rows) if r["contestant"] == "f64"}
    for name, g in got.items():
        f, t, s = g.get("f64"), training(args, name), split.get(name)
        if not f: continue
        memory.append(f["bytes_matrix"] / f["bytes_csr"])
        c, usual, eight, no = (g.get(k) if g.get(k, {}).get("pairs") != 1 else None for k in ("constant", "constant64", "constant8", "constant4096"))
        mine = own_overhead(g)
        if mine: own.append(max(mine[1], 0))
        if no: never.append(over(no, f))
        if c: overhead.append(max(over(c, f), 0))
        if eight: often.append(max(over(eight, f), 0))
        if usual: seldom.append(max(over(usual, f), 0))
        if usual and eight: looks.append(max((over(eight, f) - over(usual, f)) / (64 / 8 - 1), 0))
        trained = f"{t['time_s']:.1f} s, {t['episodes']} episodes" + (", cut off" if t.get("cut_off") else "") if t else f"as {whose[name]}" if whose[name] != "-" else "-"
        lines.append([name, f["kind"], f["n"], f["nnz"], signed(over(c, f)) if c else "-", f"{signed(mine[1])} ({mine[0]})" if mine else "-", signed(over(eight, f)) if eight else "-", signed(over(no, f)) if no else "-", times(memory[-1]), times(s["bytes_matrix"] / s["bytes_csr"]) if s else "-",
                      trained, t["interval"] if t else "-", percent(t.get("delayed"), 1) if t else "-"])
    jobs = max((t.get("side_by_side", 1) for t in (training(args, name) for name in got) if t), default=1)
    less, t = [m for m in memory if m < OUTLIER], training(args, args.transfer)
    text = beside([["policy, mean", "1.09 %", percent(mean(overhead), 2)], ["policy, median", "0.60 %", percent(median(overhead), 2)], ["below 1 %, below 2 %", "31, 38 of 47", f"{sum(o < 0.01 for o in overhead)}, {sum(o < 0.02 for o in overhead)} of {len(overhead)}"],
                   ["the same looking every 64 iterations, mean, median", "-", f"{percent(mean(seldom), 2)}, {percent(median(seldom), 2)}"],
                   ["the same looking every 8 iterations, mean, median", "-", f"{percent(mean(often), 2)}, {percent(median(often), 2)}"],
                   ["the same looking at the start alone (reading levels by block), mean, median", "-", f"{percent(mean(never), 2)}, {percent(median(never), 2)}"],
                   ["the looks alone every 64 iterations, from the difference, mean, median", "-", f"{percent(mean(looks), 2)}, {percent(median(looks), 2)}"],
                   ["each matrix's own policy at its own K* beside the level that it reads throughout: mean, median", "-", f"{percent(mean(own), 2)}, {percent(median(own), 2)} ({len(own)} matrices)"],
                   ["Tile-CSC by CSR, without outliers", "1.84 (40 of 47)", f"{times(sum(less) / len(less) if less else float('nan'))} ({len(less)} of {len(memory)})"], ["outliers, at least 3 times CSR", "7, sizes not told", " ".join(times(m) for m in sorted(memory) if m >= OUTLIER) or "none"],
                   ["split storage by CSR (ours)", "-", times(mean([s["bytes_matrix"] / s["bytes_csr"] for s in split.values()]))],
                   [f"training on {args.transfer}", "below 15 min", f"{t['time_s']:.1f} s, {t['episodes']} episodes" if t else "-"], ["training on the matrix itself", "several hours", "see the rows" + (f"; {jobs} side by side on the card" if jobs > 1 else "")]])
    publish(args, "cost", "Costs (Sec. 4.8, Fig. 10)", [text, table(["matrix", "kind", "n", "nnz", "policy", "own at its K*", "looking every 8 it.", "looking once", "Tile-CSC / CSR", "split / CSR", "training", "K*", "rises delayed"], lines)], dict(overhead=overhead, own=own, seldom=seldom, levels=never, looks=looks, memory=memory, rows=lines))


if __name__ == "__main__": main()
