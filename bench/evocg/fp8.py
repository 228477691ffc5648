#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sec. 4.1 leaves FP8 out, for reasons of the A100. Would it pay on a card that has it? An emulation in NumPy, and bytes.

usage: bench/evocg/fp8.py [--set cpu] [--matrices FOLDER] ...
1. Whole products at one format, the residual replaced by the true one after falls by 0.03 (16 bits), 1e-3 (FP32) or 0.1 (FP8), rows sums kept by the
   diagonal below FP32: iterations, and bytes against FP64's, 2 bytes of index an entry, 64 a row and 12 an entry for each true residual.
2. The error budget of the policy `budget` (theta 0.03) with FP8 as a fourth level: how much of the products may be read so, and what it saves.
3. What an ideal level of 8 bits could gain on 16 in an iteration beyond a cache: bytes at an H200's measured read bandwidth, nothing else.
The tensor cores' FP8 rates are no help: a product with a sparse matrix is bound by bytes, and e4m3 is a store format here.
"""
import numpy as np
from common import *
import emulate

DROPS = {"fp32": 1e-3, "bf16": 0.03, "e4m3": 0.1, "e5m2": 0.1}
WIDTH = {"fp64": 8, "fp32": 4, "bf16": 2, "e4m3": 1, "e5m2": 1}


READ = 4.46e12  # bytes a second, an H200, measured (bench_gpu_cg)


def traffic(a, iterations, value_bytes, replaced=0): return iterations * (a.nnz * (value_bytes + 2) + 64 * a.shape[0]) + replaced * 12 * a.nnz


def whole(a, base):
    out = {}
    for name, drop in DROPS.items():
        got = emulate.solve(a, None, low=emulate.rounded(a, name, keep_constants=name != "fp32"), drop=drop, most=4 * base["iterations"] + 50)
        ok = got["reached"] and got["true"] <= 1.05e-10
        out[name] = dict(iterations=got["iterations"], ok=bool(ok), replaced=got["replaced"], bytes=traffic(a, got["iterations"], WIDTH[name], got["replaced"]) / traffic(a, base["iterations"], 8),
                         even=(traffic(a, 1, 8) / traffic(a, 1, WIDTH[name])))
    return out


def column_norms(e):
    """Largest 2-norm of a column, a block of 64."""
    norms = np.sqrt(np.asarray(e.multiply(e).sum(axis=0)).ravel())
    pad = np.zeros(-(-len(norms) // emulate.BLOCK) * emulate.BLOCK)
    pad[:len(norms)] = norms
    return pad.reshape(-1, emulate.BLOCK).max(axis=1)


def budget(a, names, theta=0.03, eta=0.01):
    """Each block at the narrowest format whose share of the error stays within the budget, as in src/policy/policy.c, uncalibrated."""
    formats = [emulate.rounded(a, n, keep_constants=n != "fp32") for n in names]
    errors, n, b = [column_norms(a - f) for f in formats], a.shape[0], a @ np.ones(a.shape[0])
    goal = 1e-10 * np.linalg.norm(b)

    def decide(k, p, r, alpha):
        pad = np.zeros(len(errors[0]) * emulate.BLOCK)
        pad[:n] = p
        p2 = (pad.reshape(-1, emulate.BLOCK) ** 2).sum(axis=1)
        share = (min(theta * goal, eta * np.linalg.norm(r)) / alpha) ** 2 / len(p2)
        level = np.zeros(len(p2), int)
        for l, e in enumerate(errors): level[e ** 2 * p2 <= share] = l + 1
        return level

    got = emulate.solve(a, [a, *formats], decide)
    counts = np.bincount(np.concatenate(got["decisions"]), minlength=len(names) + 1) / sum(map(len, got["decisions"]))
    value = sum(c * w for c, w in zip(counts, [8, *(WIDTH[n] for n in names)]))
    return dict(iterations=got["iterations"], true=got["true"], shares=dict(zip(["fp64", *names], map(float, counts))), bytes=traffic(a, got["iterations"], value))


def bounds():
    """Of an iteration with so many entries a row: microseconds a million rows at 16 bits and at 8, and by how much 8 could be faster, which is how many more iterations it may take."""
    bytes_a_row = lambda entries, level: entries * (WIDTH[level] + 2) + 64
    us = lambda size: f"{1e6 * size / READ * 1e6:.0f}"
    rows = [[entries, *(f"{size} bytes, {us(size)} us" for size in (bytes_a_row(entries, l) for l in ("bf16", "e4m3"))), signed(bytes_a_row(entries, "bf16") / bytes_a_row(entries, "e4m3") - 1)] for entries in (5, 7, 15, 27, 79)]
    return table(["entries a row", "16 bits", "8 bits", "faster at most, and more iterations at most"], rows + [["without vectors", "4 an entry", "3 an entry", signed(1 / 3)]])


def main(argv=None):
    args = parse(parser(__doc__), argv)
    lines, more, data = [], [], {}
    for c in cases(args):
        if late(args): break
        a = load(matrix(args, c))
        if a.nnz == a.shape[0]: continue  # a diagonal has no couplings to round
        base = emulate.solve(a, [a])
        if not LEAST_ITERATIONS <= base["iterations"] <= 2000: continue
        w = whole(a, base)
        cell = lambda v: f"{v['iterations']}, {v['bytes']:.2f}" if v["ok"] else "not there"
        lines.append([c["name"], c["kind"], f"{a.nnz / a.shape[0]:.1f}", base["iterations"], *(cell(w[n]) for n in DROPS), f"{w['bf16']['iterations'] * w['e4m3']['even'] / w['bf16']['even']:.0f}"])
        three, four = budget(a, ["fp32", "bf16"]), budget(a, ["fp32", "bf16", "e4m3"])
        f64 = traffic(a, base["iterations"], 8)
        more.append([c["name"], f"{three['iterations']}, {three['bytes'] / f64:.3f}", f"{four['iterations']}, {four['bytes'] / f64:.3f}", percent(four["shares"]["e4m3"], 1), signed(1 - four["bytes"] / three["bytes"])])
        data[c["name"]] = dict(f64=base["iterations"], whole=w, budget=three, budget_fp8=four)
        print(*lines[-1], "|", *more[-1], flush=True)
    pays = [n for n, d in data.items() if any(d["whole"][f]["ok"] and d["whole"][f]["bytes"] < min([1] + [d["whole"][g]["bytes"] for g in ("bf16", "fp32") if d["whole"][g]["ok"]]) for f in ("e4m3", "e5m2"))]
    text = beside([["FP8 actions", "left out: no path on the A100, unstable training", f"whole products at FP8 move fewest bytes on {len(pays)} of {len(data)} matrices {' '.join(pays)}"], ["FP8 as a fourth level of the budget: bytes saved", "-", f"mean {signed(mean([1 - d['budget_fp8']['bytes'] / d['budget']['bytes'] for d in data.values()]))}"]])
    publish(args, "fp8", "Whether FP8 pays (Sec. 4.1)", [text, "Iterations, and bytes by FP64's:\n", table(["matrix", "kind", "a row", "FP64 it.", *DROPS, "e4m3 would pay against BF16 up to it."], lines), "The budget with three and with four levels: iterations, and bytes by FP64's:\n", table(["matrix", "FP64, FP32, BF16", "and e4m3", "read at e4m3", "bytes saved"], more), f"An iteration beyond the cache of an H200 that reads {1e-12 * READ:g} TB/s, by its bytes alone (a row, and for a million rows):\n", bounds()], dict(matrices=data))


if __name__ == "__main__": main()
