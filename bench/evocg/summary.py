#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The table of docs/evocg.md from the card's results: the paper's figure, and ours.

usage: bench/evocg/summary.py [--results bench/results/evocg] [--into docs/evocg.md]
With --into the lines between `<!-- summary -->` and `<!-- end of summary -->` are replaced, else the table is printed.
"""
import argparse
from common import *

BEGIN, END = "<!-- summary -->", "<!-- end of summary -->"


def spread(v): return f"{times(geomean(v))} ({times(min(v))} to {times(max(v))}; {len(v)} matrices)" if v else "-"


def guarded(p, who):
    a = p.get(f"guarded:{who}", {}).get("all")
    if not a: return "-"
    lost = len(p[f"guarded:{who}"]["missed"])
    return f"{times(a['speed'])} ({times(a['best_third'])}), {signed(a['iterations'])}, {short(a['true_ratio'])}" + (f"; {lost} of {a['matrices'] + len(p[f'guarded:{who}']['lost'])} not certified" if lost else "")


def lines(read):
    e, p, t, j, r, c = (read(f"{n}-cuda") for n in ("endtoend", "precision", "transfer", "jacobi", "rule", "cost"))
    engine, ratios, fixed = "paper's engine", e["ratios"], p["fixed"]["ratios"]
    cg, all_, missed = p["cg:learned"], p["cg:learned"]["all"], p["cg:learned"]["missed"]
    sides = cg["groups"]
    told = lambda g: f"{sides[g]['matrices']}: {times(sides[g]['speed'])} at {signed(sides[g]['iterations'])}" if sides[g]["matrices"] else "none"
    bare = lambda who: f"{times(p[f'cg:{who}']['all']['speed'])} ({times(p[f'cg:{who}']['all']['best_third'])}), {short(p[f'cg:{who}']['all']['true_ratio'])}" if f"cg:{who}" in p else "-"
    yield "learned policy on the paper's engine against cuSPARSE + cuBLAS, scalars on the host", "2.52 (at most 4.47)", spread(ratios.get(f"{engine}, learned / cuSPARSE"))
    yield "the same engine in FP64", "-", spread(ratios.get(f"{engine}, FP64 / cuSPARSE"))
    yield "learned, FP64 against the library in a CUDA graph", "not run", " and ".join(spread(ratios.get(f"{engine}, {w} / cuSPARSE in a graph")) for w in ("learned", "FP64"))
    yield "halftone as it chooses by itself (`auto`) against the same two", "-", " and ".join(spread(ratios.get(f"halftone, auto / {w}")) for w in ("cuSPARSE", "cuSPARSE in a graph"))
    yield "the product's share of FP64 CG (the library's sample form)", "67.1 %", f"{percent(mean(e['shares']))} ({percent(min(e['shares']))} to {percent(max(e['shares']))})"
    yield "dynamic precision against own FP64, as the paper has it: speed (best third)", "1.28", f"**{times(all_['speed'])}** ({times(all_['best_third'])}; {all_['matrices']} matrices)"
    yield "iterations", "+11.4 %", signed(all_["iterations"])
    yield "read below FP64", "56.9 %", percent(all_["low"])
    yield "true residual by FP64's", "1.0108", f"**{all_['true_ratio']:.2g}**; above the tolerance on {len(missed)} of {all_['matrices'] + len(cg['lost'])}"
    yield "error against the known solution by FP64's: geometric mean, worst", "not told", f"{all_['error_ratio']:.2g}, {all_['error_worst']:.2g}"
    yield "favourable and costly group", "13: 1.365 at +3.2 %; 1.09 at +31.8 %", f"{told('favourable')}; {told('costly')}"
    yield "FP32, 16 bits throughout, the same way: speed (best third), true residual", "-", "; ".join(map(bare, ("f32", "16")))
    yield "behind the guard: speed (best third), iterations, true residual: learned", "-", guarded(p, "learned")
    yield "policy of the reward `time`", "-", guarded(p, "time")
    yield "settled: the fastest of these and of FP64, 32 and 16 bits", "-", f"**{guarded(p, 'settled')}**"
    for who, name in (("f32", "FP32"), ("16", "16 bits with column sums"), ("budget", "error budget"), ("rule", "the rule")): yield name, "-", guarded(p, who)
    yield "settled, learned against the better of FP32 and 16 bits", "-", "; ".join(spread(fixed.get(f"{w} / best fixed")) for w in ("settled", "learned"))
    yield "settled, learned against the budget", "-", "; ".join(spread(fixed.get(f"{w} / budget")) for w in ("settled", "learned"))
    cgt = t["cg"]
    total = sum(cgt[k] for k in ("faster", "no gain", "not converged", "not timed"))
    yield "transfer from mesh2e1: faster, no gain, not converged", "23, 15, 9 of 47", f"**{cgt['faster']}** ({times(cgt['speed_of_faster'])}), {cgt['no gain']}, {cgt['not converged']} of {total}; the true residual meets the tolerance on {cgt['truly_converged']}"
    yield "Jacobi without retraining: own FP64, iterations", "1.15, +4.99 %", f"{times(j['speed'])}, {signed(j['iterations'])} ({j['matrices']} matrices)"
    yield "Jacobi against cuSPARSE's", "4.17", times(j["cusparse"])
    yield "learned against the rule", "1.36 (1.33 by Table 1)", times(r["learned_over_rule"])
    yield "the rule converges", "27 of 47", f"{r['converge']['rule']} of {r['matrices']} by the recursive residual"
    yield "policy in the loop, at its K* (1024: no rise is delayed), all that asking for levels costs: mean, median", "1.09 %, 0.60 %", f"**{percent(mean(c['overhead']), 2)}**, {percent(median(c['overhead']), 2)}; looking every 64 iterations {percent(mean(c.get('seldom', [])), 2)}, {percent(median(c.get('seldom', [])), 2)}, the looks alone {percent(mean(c['looks']), 2)}"
    yield "below 1 %, below 2 %", "31, 38 of 47", f"{sum(o < 0.01 for o in c['overhead'])}, {sum(o < 0.02 for o in c['overhead'])} of {len(c['overhead'])}"
    yield "Tile-CSC by CSR without outliers", "1.84, 7 outliers of 47", f"{times(mean([m for m in c['memory'] if m < 3]))}, {sum(m >= 3 for m in c['memory'])} of {len(c['memory'])}"


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--results", type=pathlib.Path, default=ROOT / "bench/results/evocg")
    ap.add_argument("--into", type=pathlib.Path)
    args = ap.parse_args()
    text = table(["", "paper (A100)", "ours"], lines(lambda name: json.loads((args.results / f"{name}.json").read_text())))
    if not args.into: print(text); return
    page = args.into.read_text()
    first, last = page.index(BEGIN) + len(BEGIN), page.index(END)
    args.into.write_text(page[:first] + "\n" + text + page[last:])


if __name__ == "__main__": main()
