#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sec. 3.4: the reuse interval K* of each matrix, the upward transitions that it delays, and how persistent decisions are.

usage: bench/evocg/reuse.py [--matrices FOLDER] [--policies FOLDER] ...
A run that decides in every iteration, emulated in NumPy (emulate.py), gives each block's precision in each iteration. A transition upward in
iteration k is delayed by a reuse over K iterations where K does not divide k. K* is the largest of 1, 2, 4, ... with less than 10 % delayed.
"""
import numpy as np
from common import *
import emulate

LONGEST = 4096


def study(decisions):
    """decisions: iterations x blocks; 0 is FP64, so that upward is towards 0."""
    d = np.array(decisions).astype(int)
    rises = np.array([np.sum(d[k] < d[k - 1]) for k in range(1, len(d))]) if len(d) > 1 else np.zeros(0)
    total, share, best = rises.sum(), {}, 1
    interval = 1
    while interval <= LONGEST:
        late = sum(rises[k - 1] for k in range(1, len(d)) if k % interval)
        share[interval] = float(late / total) if total else 0.0
        if share[interval] >= 0.1: break
        best, interval = interval, 2 * interval
    same = float(np.mean(d[1:] == d[:-1])) if len(d) > 1 else 1.0
    changes = (d[1:] != d[:-1]).sum(axis=0)
    return dict(interval=best, delayed=share[best], delayed_next=share.get(2 * best), rises=int(total), persistent=same, run=float(len(d) / np.mean(changes + 1)), mix=[float(np.mean(d == l)) for l in range(3)])


def main(argv=None):
    args = parse(parser(__doc__), argv)
    lines, data = [], {}
    for c in cases(args):
        own, carried = policy(args, c["name"], c), policy(args, args.transfer)
        if late(args): break
        for label, path in (("learned", own), ("transfer", carried)):
            if path is None: continue
            a = load(matrix(args, c))
            products = [a, emulate.rounded(a, "fp32"), emulate.rounded(a, "bf16")]
            network = emulate.Network(path)
            got = emulate.solve(a, products, lambda k, p, r, alpha: network.decide(p), most=2 * LEAST_ITERATIONS * 10)
            s = study(got["decisions"])
            t = training(args, c["name"]) if label == "learned" else None
            lines.append([c["name"], c["kind"], label, got["iterations"] if got["reached"] else f"{got['iterations']}, not there", s["interval"] if s["rises"] else "any", percent(s["delayed"], 1), percent(s["delayed_next"], 1), s["rises"], percent(s["persistent"], 2), f"{s['run']:.0f}", " / ".join(percent(m) for m in s["mix"]), t["interval"] if t else "-"])
            data[f"{c['name']}:{label}"] = s
    rising = [s for s in data.values() if s["rises"]]
    text = beside([["K*", "not told", " ".join(f"{s['interval']}" for s in rising) or "-"], ["decisions equal to the iteration's before", "\"strong temporal persistence\"", percent(mean([s["persistent"] for s in data.values()]), 1)], ["policies without one transition upward (any K* will do)", "not told", f"{len(data) - len(rising)} of {len(data)}"]])
    publish(args, "reuse", "The reuse interval K* (Sec. 3.4)", [text, table(["matrix", "kind", "policy", "it.", "K*", "delayed by it", "by twice that", "transitions upward", "same as before", "iterations a decision lasts", "FP64 / FP32 / 16 bits", "K* found in training"], lines)], dict(policies=data))


if __name__ == "__main__": main()
