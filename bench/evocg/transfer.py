#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sec. 4.5: a policy trained on mesh2e1 alone, put to use on every other matrix without further training.

usage: bench/evocg/transfer.py [--backend cpu|cuda] [--transfer mesh2e1] [--matrices FOLDER] ...
Outcomes are counted as the paper does, without the guard: faster, no gain, not converged; then what the certificate says of them, and the
same behind the guard.
"""
from common import *


WAYS = {"transfer": "looking as often as its training chose", "transfer64": "looking every 64 iterations"}


def outcome(r): return "not converged" if not reached(r) else "not timed" if speed(r) != speed(r) else "faster" if speed(r) > 1 else "no gain"


def carried(args, got, own, contestant, paper):
    """A table of what came of it, the summary before it, and its figures. paper: whether the paper's figures are beside."""
    lines, timed, count, faster, truly = [], [], {"faster": 0, "no gain": 0, "not converged": 0, "not timed": 0}, [], 0
    for name, g in got.items():
        f, r, mine = g.get("f64"), g.get(contestant), own.get(name, {}).get("learned")
        if not f or not r: continue
        what = outcome(r) if fair(f) else "listed only"
        if fair(f): count[what] += 1; truly += r["outcome"] == "converged"
        if what == "faster": faster.append(speed(r))
        if fair(f) and worth(f, r) and speed(r) == speed(r): timed.append(speed(r))
        lines.append([name, r["kind"], f["iterations"], mine["iterations"] if mine else "-", r["iterations"], times(speed(r)), " / ".join(percent(r[k]) for k in ("share_64", "share_32", "share_16")),
                      f"{r['residual_true']:.1e}", r["outcome"], what, "{learned} -> {transfer}".format(**paper_of(name)) if "transfer" in paper_of(name) else "-"])
    total = sum(count.values())
    text = beside([["faster than own FP64", "23 of 47" if paper else "-", f"{count['faster']} of {total}"], ["their speed", "1.21" if paper else "-", times(geomean(faster))],
                   ["speed of all that were timed, the slowest", "-", f"{times(geomean(timed))} ({len(timed)} matrices), {times(min(timed, default=float('nan')))}"], ["converged without gain", "15" if paper else "-", count["no gain"]], ["not converged", "9" if paper else "-", count["not converged"]], ["converged, not timed", "-", count["not timed"]],
                   ["true residual meets the tolerance", "not told" if paper else "-", f"{truly} of {total}"]])
    head = ["matrix", "kind", "FP64 it.", "own policy's it.", "transferred it.", "speed", "FP64 / FP32 / 16 bits", "true residual", "outcome", "counted as", "paper's it. (own -> transferred)"]
    return [text, table(head, lines)], dict(count, speed_of_faster=geomean(faster), speed=geomean(timed), slowest=min(timed, default=float("nan")), timed=len(timed), truly_converged=truly, rows=lines)


def main(argv=None):
    args = parse(parser(__doc__), argv)
    rows, parts, data = cases(args), [], {}
    for setting, title in (("cg", "As the paper does: recursive residual, guard off"), ("guarded", "Behind the guard")):
        got = by_matrix(measure(args, setting, ["f64", *WAYS], rows))
        own = by_matrix([r for r in measured(args)["rows"] if r["setting"] == setting])
        for contestant, way in WAYS.items():
            if not any(contestant in g for g in got.values()): continue
            of = training(args, args.transfer) if contestant == "transfer" else None
            text, figures = carried(args, got, own, contestant, setting == "cg")
            parts += [f"## {title}, {way}" + (f" (K* = {of['interval']})" if of else "") + "\n", *text]
            data[setting + contestant.removeprefix("transfer")] = figures
    t = training(args, args.transfer)
    if t: parts.append(f"The policy: {t['episodes']} episodes on {args.transfer}, {t['time_s']:.0f} s; on {args.transfer} itself it reads {percent(t['share_f64'])} / {percent(t['share_f32'])} / {percent(t['share_16'])} at FP64 / FP32 / 16 bits.\n")
    publish(args, "transfer", f"Transfer from {args.transfer} (Sec. 4.5, Fig. 9)", parts, data)


if __name__ == "__main__": main()
