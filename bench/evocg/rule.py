#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sec. 4.7, Table 1: the residual-threshold rule against learned policies, everything else the same.

usage: bench/evocg/rule.py [--backend cpu|cuda] [--matrices FOLDER] ...
The rule looks every `policy-interval` iterations, 8 unless told otherwise, and no product waits for it; the paper's is asked in every one.
"""
from common import *


def cell(f, r): return f"{r['iterations']} ({r['iterations'] - f['iterations']:+d})" + ("" if reached(r) else " " + r["outcome"])


def main(argv=None):
    args = parse(parser(__doc__), argv)
    rows, lines = cases(args), []
    got, reach, ratio, pairs = by_matrix(measure(args, "cg", ["f64", "learned", "rule", "f32", "16", "budget"], rows)), {"learned": 0, "rule": 0}, [], []
    for name, g in got.items():
        f, learned, rule = g.get("f64"), g.get("learned"), g.get("rule")
        if not f or not learned or not rule: continue
        p = paper_of(name)
        if fair(f):
            pairs.append((f, learned))
            for label, r in (("learned", learned), ("rule", rule)): reach[label] += reached(r)
            if worth(f, learned) and worth(f, rule) and speed(rule) == speed(rule): ratio.append(speed(learned) / speed(rule))
        lines.append([name, learned["kind"], cell(f, learned), cell(f, rule), f["iterations"], *(f"{1e3 * r['loop_s']:.2f}" if r.get("pairs") != 1 else "-" for r in (learned, rule, f)), f"{learned['residual_true']:.1e}", f"{rule['residual_true']:.1e}",
                      " / ".join(str(p[k]) for k in ("learned", "rule", "f64")) if "rule" in p else "-"])
    total, left = len(pairs), left_out([p for p in pairs if reached(p[1])])
    text = beside([["learned converges (recursive residual)", "47 of 47", f"{reach['learned']} of {total}"], ["the rule converges", "27 of 47", f"{reach['rule']} of {total}"],
                   ["learned against rule, where both do", "1.36 (1.33 from Table 1's own eight rows)", times(geomean(ratio))], ["learned faster than the rule", "8 of 8", f"{sum(x > 1 for x in ratio)} of {len(ratio)}"],
                   ["learned left out of both: iterations of FP64's, true residual", "-", ", ".join(left) or "none"]])
    publish(args, "rule", "A rule against learned policies (Sec. 4.7, Table 1)", [text, table(["matrix", "kind", "learned it.", "rule it.", "FP64 it.", "learned ms", "rule ms", "FP64 ms", "learned true residual", "rule true residual", "paper's it. (learned / rule / FP64)"], lines)],
            dict(converge=reach, matrices=total, learned_over_rule=geomean(ratio), rows=lines))


if __name__ == "__main__": main()
