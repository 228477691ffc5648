#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The table of docs/evocg.md from the card's results: the paper's figure, and ours.

usage: bench/evocg/summary.py [--results bench/results/evocg] [--into docs/evocg.md]
With --into the lines between `<!-- summary -->` and `<!-- end of summary -->` are replaced, else the table is printed.
"""
import argparse
from common import *

BEGIN, END = "<!-- summary -->", "<!-- end of summary -->"
NAMES = {"f64": "FP64", "f32": "FP32", "16": "16 bits", "time": "the policy of `time`"}


def spread(v): return f"{times(geomean(v))} ({times(min(v))} to {times(max(v))}; {len(v)} matrices)" if v else "-"


def listed_all(names): return f"{len(names)}: {', '.join(names)}" if names else "none"


def guarded(p, who):
    """Speed, its least and its best third, iterations, true residual, error and its worst, and what is not certified."""
    a = p.get(f"guarded:{who}", {}).get("all")
    if not a: return "-"
    lost, of = p[f"guarded:{who}"]["missed"], a["matrices"] + len(p[f"guarded:{who}"]["lost"])
    return f"{times(a['speed'])} ({times(a['slowest'])}, {times(a['best_third'])}; {a['timed']}), {signed(a['iterations'])}, {short(a['true_ratio'])}, {short(a['error_ratio'])} ({short(a['error_worst'])})" + (f"; {len(lost)} of {of} not certified: {', '.join(lost)}" if lost else "")


def against_peers(e):
    ratio = lambda who, peer: spread(e["ratios"].get(f"{who} / {peer}"))
    engine, auto, graph = "paper's engine", "halftone, auto", "cuSPARSE in a graph"
    yield "4.2, Fig. 6: learned policy on the paper's engine against cuSPARSE + cuBLAS, scalars on the host", "2.52 (at most 4.47)", ratio(f"{engine}, learned", "cuSPARSE")
    yield "left out of this and of what follows (iterations of FP64's, true residual)", "-", listed_all(e["left"])
    yield "the same engine in FP64", "-", ratio(f"{engine}, FP64", "cuSPARSE")
    yield "learned, FP64 against the library in a CUDA graph", "not run", f"{ratio(f'{engine}, learned', graph)} and {ratio(f'{engine}, FP64', graph)}"
    yield "halftone as it chooses by itself (`auto`) against the same two", "-", f"{ratio(auto, 'cuSPARSE')} and {ratio(auto, graph)}"
    yield "`auto` takes more than 1.02 times the time of halftone's FP64; is not certified where that is", "-", f"{listed_all(e['slower'])}; {listed_all(e['lost'])}"
    told = lambda who: ", ".join(spread(e["beside"].get(f"{who} / {peer}")) for peer in ("petsc", "ginkgo", "sample"))
    for who, name in (("peers:learned", "learned"), ("peers:f64", "the paper's engine in FP64"), ("peers-product:auto", "`auto`")):
        if e.get("beside"): yield f"{name} beside PETSc, Ginkgo and cuSPARSE in one run", "3.06, 2.48, 2.52" if who == "peers:learned" else "-", told(who)
    off = [abs(a / b - 1) for _, a, b in e["iterations"]]
    yield "4.3: iterations of EvoCG-FP64 and of cuSPARSE's CG: the same, at most 1 % apart, furthest", "the same", f"{sum(o == 0 for o in off)}, {sum(o <= 0.01 for o in off)} of {len(off)}, {percent(max(off), 1)}"
    yield "Fig. 2: the product's share of FP64 CG (the library's sample form)", "67.1 %", f"{percent(mean(e['shares']))} ({percent(min(e['shares']))} to {percent(max(e['shares']))})"


def unguarded(p):
    cg = p["cg:learned"]
    a, sides = cg["all"], cg["groups"]
    told = lambda g: f"{sides[g]['matrices']}: {times(sides[g]['speed'])} at {signed(sides[g]['iterations'])}" if sides[g]["matrices"] else "none"
    bare = lambda who: f"{times(p[f'cg:{who}']['all']['speed'])} ({times(p[f'cg:{who}']['all']['best_third'])}), {short(p[f'cg:{who}']['all']['true_ratio'])}" if f"cg:{who}" in p else "-"
    yield "4.3, Fig. 7: dynamic precision against own FP64, as the paper has it: speed (best third)", "1.28", f"**{times(a['speed'])}** ({times(a['best_third'])}; {a['timed']} matrices)"
    yield "the slowest", "0.92", times(a["slowest"])
    yield "iterations", "+11.4 %", f"{signed(a['iterations'])} ({a['matrices']} matrices)"
    yield "read below FP64", "56.9 %", percent(a["low"])
    yield "true residual by FP64's", "1.0108", f"**{a['true_ratio']:.2g}**; above the tolerance on {len(cg['missed'])} of {cg['reached'] + len(cg['lost'])}"
    yield "recursive residual not at the tolerance", "0 of 47", listed_all(cg["lost"])
    yield "error against the known solution by FP64's: geometric mean, worst", "not told", f"{a['error_ratio']:.2g}, {a['error_worst']:.2g}"
    yield "favourable and costly group", "13: 1.365 at +3.2 %; 1.09 at +31.8 %", f"{told('favourable')}; {told('costly')}"
    yield "FP32, 16 bits throughout, the same way: speed (best third), true residual", "-", "; ".join(map(bare, ("f32", "16")))


def behind_guard(p):
    fixed = p["fixed"]["ratios"]
    both = lambda to: "; ".join(spread(fixed.get(f"{who} / {to}")) for who in ("settled", "learned"))
    own = p["own_errors"]
    yield "behind the guard: speed (slowest, best third; timed), iterations, true residual, error (worst): learned", "-", guarded(p, "learned")
    yield "policy of the reward `time`", "-", guarded(p, "time")
    yield "settled: the fastest of these and of FP64, 32 and 16 bits", "-", f"**{guarded(p, 'settled')}**"
    kinds = [r[-1] for r in p["fixed"]["rows"] if r[-1] != "-"]
    yield "what it settled on", "-", ", ".join(f"{NAMES.get(k, k)} on {kinds.count(k)}" for k in sorted(set(kinds), key=kinds.count, reverse=True))
    for who, name in (("f32", "FP32"), ("16", "16 bits with column sums"), ("budget", "error budget"), ("rule", "the rule")): yield name, "-", guarded(p, who)
    yield "FP64's own error on halftone's engine by that on this one", "-", spread(own)
    yield "settled, learned against the better of FP32 and 16 bits", "-", both("best fixed")
    yield "settled, learned against the budget", "-", both("budget")
    yield "4.7, both guarded: settled, learned against the rule", "not run", both("rule")


def other_experiments(t, j, r, c):
    cg, ways = t["cg"], ("faster", "no gain", "not timed", "not converged")
    total = sum(cg[k] for k in ways)
    yield "4.5: transfer from mesh2e1: faster, no gain, not timed, not converged", "23, 15, -, 9 of 47", f"**{cg['faster']}** ({times(cg['speed_of_faster'])}), {cg['no gain']}, {cg['not timed']}, {cg['not converged']} of {total}; the true residual meets the tolerance on {cg['truly_converged']}"
    yield "not converged", "not told", listed_all([r[0] for r in cg["rows"] if r[9] == "not converged"])
    if "guarded" in t:
        g = t["guarded"]
        yield "the same behind the guard: faster, no gain, not timed, not certified; speed of all that were timed (slowest), certified", "not run", f"{g['faster']} ({times(g['speed_of_faster'])}), {g['no gain']}, {g['not timed']}, {g['not converged']} of {sum(g[k] for k in ways)}; {times(g['speed'])} ({times(g['slowest'])}; {g['timed']} matrices), {g['truly_converged']}"
    if "cg64" in t: yield "looking every 64 iterations, unguarded" + ("; guarded" if "guarded64" in t else ""), "not run", "; ".join(", ".join(str(t[s][k]) for k in ways) for s in ("cg64", "guarded64") if s in t)
    yield "4.6: Jacobi without retraining: own FP64, iterations", "1.15, +4.99 %", f"{times(j['speed'])} ({j['timed']} matrices), {signed(j['iterations'])} ({j['matrices']})"
    yield "left out", "-", listed_all(j["left"])
    yield "Jacobi against cuSPARSE's", "4.17", times(j["cusparse"])
    for key, name in (("jacobi-guarded:learned", "the same policies behind the guard"), ("jacobi-guarded:settled", "settled, behind the guard"), ("jacobi-product:auto", "`auto` on halftone's engine"), ("jacobi-product:library", "the library's policy there")):
        if key in j: yield f"Jacobi, {name}: own FP64, iterations, cuSPARSE; beyond the cache", "not run", "; ".join(f"{times(j[key][of]['speed'])} ({j[key][of]['timed']} matrices), {signed(j[key][of]['iterations'])}, {times(j[key][peer])}" for of, peer in (("all", "cusparse"), ("hbm", "hbm_cusparse"))) + (f"; {len(j[key]['missed'])} not certified" if j[key]["missed"] else "")
    if "own_f64" in j: yield "Jacobi, FP64 on halftone's engine: cuSPARSE; beyond the cache", "not run", "; ".join(map(times, j["own_f64"]))
    yield "4.7, Table 1: learned against the rule, unguarded", "1.36 (1.33 by Table 1)", times(r["learned_over_rule"])
    yield "the rule converges", "27 of 47", f"{r['converge']['rule']} of {r['matrices']} by the recursive residual"
    yield "4.8, Fig. 10(a): policy in the loop, at its K* (1024: no rise is delayed), all that asking for levels costs: mean, median", "1.09 %, 0.60 %", f"**{percent(mean(c['overhead']), 2)}**, {percent(median(c['overhead']), 2)}; looking every 64 iterations {percent(mean(c.get('seldom', [])), 2)}, {percent(median(c.get('seldom', [])), 2)}, the looks alone {percent(mean(c['looks']), 2)}"
    if c.get("own"): yield "each matrix's own policy at its own K* beside the level that it reads throughout: mean, median", "-", f"{percent(mean(c['own']), 2)}, {percent(median(c['own']), 2)} ({len(c['own'])} matrices)"
    yield "below 1 %, below 2 %", "31, 38 of 47", f"{sum(o < 0.01 for o in c['overhead'])}, {sum(o < 0.02 for o in c['overhead'])} of {len(c['overhead'])}"
    yield "Fig. 10(b): Tile-CSC by CSR without outliers", "1.84, 7 outliers of 47", f"{times(mean([m for m in c['memory'] if m < 3]))}, {sum(m >= 3 for m in c['memory'])} of {len(c['memory'])}"


def beyond_the_cache(suite):
    """`learned` against own FP64 on halftone's engine with Jacobi, matrices of the suite beyond the cache whose values no level holds exactly."""
    mine = [r for r in suite["rows"] if r["class"] == "HBM" and r["precond"] == "jacobi" and r["outcome"] == "converged" and r["averaged"]]
    exact = {r["matrix"] for r in mine if "every value is exact" in r["policy_chosen"]}
    f64 = {r["matrix"]: r for r in mine if r["policy"] == "fixed:f64"}
    pairs = sorted(((f64[r["matrix"]], r) for r in mine if r["policy"] == "learned" and r["matrix"] in f64 and r["matrix"] not in exact), key=lambda p: p[1]["speedup_f64"])
    some = lambda a, b: [r["speedup_f64"] for _, r in pairs if a <= r["nnz"] / r["n"] < b]
    third, by = pairs[-(len(pairs) // 3):], lambda key, v: geomean([f[key] / r[key] for f, r in v])
    yield "beyond the cache, halftone's engine, Jacobi: `learned` (on a GPU `auto`'s rule) against own FP64 at 18.5 or more nonzeros a row, at 5 to 9.5, in between", "1.28", "; ".join(spread(some(*of)) for of in ((18.5, 1e9), (0, 9.5), (9.5, 18.5)))
    yield "their best third: speed; by bytes, by the time of an iteration, iterations", "-", f"{spread([r['speedup_f64'] for _, r in third])}; {times(by('bytes_per_iteration', third))}, {times(by('us_per_iteration', third))}, {signed(mean([r['iterations'] / f['iterations'] - 1 for f, r in third]))}"


def lines(read, suite):
    e = read("endtoend")
    yield from against_peers(e)
    precision = read("precision")
    yield from unguarded(precision)
    yield from behind_guard(precision)
    yield from other_experiments(*map(read, ("transfer", "jacobi", "rule", "cost")))
    yield from beyond_the_cache(suite)
    largest = max(e["rows"], key=lambda r: r[3])
    yield "matrices in these tables, the largest", "47", f"{len(e['rows'])}, {largest[0]} ({largest[3]:,} nonzeros)"


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--results", type=pathlib.Path, default=ROOT / "bench/results/evocg")
    ap.add_argument("--into", type=pathlib.Path)
    args = ap.parse_args()
    read = lambda name: json.loads((args.results / f"{name}-cuda.json").read_text())
    suite = json.loads(max(args.results.parent.glob("h200-cg-20*.json")).read_text())
    text = table(["", "paper (A100)", "ours"], lines(read, suite))
    if not args.into: print(text); return
    page = args.into.read_text()
    first, last = page.index(BEGIN) + len(BEGIN), page.index(END)
    args.into.write_text(page[:first] + "\n" + text + page[last:])


if __name__ == "__main__": main()
