#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Figs. 8 and 9: residuals over the iterations with the precision mix, of FP64, the learned policy and the transferred one.

usage: bench/evocg/trajectories.py [--only NAME,...] [--matrices FOLDER] ...
Writes one page a matrix with `halftone report` (OUT/trajectory-NAME.html), and a table. Without --only: the figures' matrices or stand-ins.
"""
from common import *

FIG8, FIG9 = ["Dubcova2", "wathen100", "bodyy4", "ted_B_unscaled"], ["minsurfo", "qa8fm", "thermomech_dM", "wathen120", "Dubcova1"]


def run(args, case, label, pol, guard):
    report = args.out / f"trajectory-{case['name']}-{label}{'' if guard else '-unguarded'}.report.json"
    engine = "paper" if args.backend == "cuda" else "textbook"
    command = [args.halftone, "solve", matrix(args, case), "--trace", "--json", "--report", report, "--policy", pol, "--precond", "none", "--format", "tilecsc", "--ordering", "natural", "--engine", engine,
               "--backend", args.backend, "--max-iterations", str(MOST_ITERATIONS), "--threads", str(args.threads)] + ([] if guard else ["--no-guard", "--stopping", "paper"])
    if not guard and pol != "fixed:f64": command.append("--no-column-sums")
    r = subprocess.run(command, capture_output=True, text=True)
    if r.returncode > 1: print(f"{case['name']}: {r.stderr.strip()}", file=sys.stderr); return None, report
    return json.loads(r.stdout), report


def quarters(report):
    """The mix FP64 / FP32 / 16 bits in each quarter of the iterations, from the changes of levels in the trace."""
    t, n = report["trace"], report["iterations"]
    changes = [(c["iteration"], [sum(g[0] * g[k] for g in c["groups"]) for k in (3, 2, 1)]) for c in t["levels"]]
    out = []
    for q in range(4):
        first, end, total = q * n / 4, (q + 1) * n / 4, [0.0] * 3
        for i, (at, counts) in enumerate(changes):
            until = changes[i + 1][0] if i + 1 < len(changes) else n
            span = min(end, until) - max(first, at)
            if span > 0: total = [s + span * v for s, v in zip(total, counts)]
        out.append("/".join(f"{100 * v / sum(total):.0f}" for v in total) if sum(total) else "-")
    return out


def main(argv=None):
    args = parse(parser(__doc__), argv)
    if not args.only: args.only = ",".join(FIG8 + FIG9)
    lines, data = [], {}
    for c in cases(args):
        if late(args): break
        runs, reports = {}, []
        own, carried = policy(args, c["name"], c), policy(args, args.transfer)
        for label, path in (("FP64", "fixed:f64"), ("learned", own and f"learned:{own}"), (args.transfer, carried and f"learned:{carried}")):
            for guard in (False, True) if path and label != "FP64" else (False,) if path else ():
                r, file = run(args, c, label, path, guard)
                if r: runs[label + (", guarded" if guard else "")] = r; reports.append(file)
        if not runs: continue
        page = args.out / f"trajectory-{c['name']}.html"
        if reports: subprocess.run([args.halftone, "report", *reports, "-o", page, "--title", f"{c['name']} ({c['kind']})", "--quiet"], check=True)
        p = paper_of(c["name"])
        for label, r in runs.items():
            told = {"FP64": p.get("f64"), "learned": p.get("learned"), args.transfer: p.get("transfer")}.get(label)
            lines.append([c["name"], c["kind"], label, told if told is not None else "-", r["iterations"], f"{r['residual_true']:.1e}", r["outcome"], r["replacements"], *quarters(r)])
            data[f"{c['name']}:{label}"] = dict(iterations=r["iterations"], residual_true=r["residual_true"], outcome=r["outcome"], quarters=quarters(r))
    publish(args, "trajectories", "Trajectories (Figs. 8 and 9)", ["The mix is FP64/FP32/16 bits in per cent, a quarter of the iterations each.\n", table(["matrix", "kind", "run", "paper's it.", "it.", "true residual", "outcome", "replacements", "first quarter", "second", "third", "last"], lines)], dict(runs=data))


if __name__ == "__main__": main()
