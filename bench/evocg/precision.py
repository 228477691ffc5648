#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sec. 4.3, Fig. 7: dynamic precision against own FP64 on the same storage and engine (Tile-CSC; the paper's engine on a GPU).

usage: bench/evocg/precision.py [--backend cpu|cuda] [--set cpu] [--matrices FOLDER] [--policies FOLDER] [--out FOLDER] ...
Twice: as the paper does (recursive residual, nothing mended: guard off), and behind the guard, which certifies the true residual.
"""
from common import *

LOW, GROWTH = 0.01, 0.10  # below: all FP64; above: the paper's second group


def group(f64, row):
    if row["share_64"] > 1 - LOW: return "FP64 alone"
    return "favourable" if row["iterations"] <= (1 + GROWTH) * f64["iterations"] else "costly"


def figures(pairs):
    """Of (FP64's row, the policy's): what the paper averages."""
    left, pairs = left_out(pairs), [p for p in pairs if worth(*p)]
    speeds, errors = known([speed(r) for _, r in pairs]), known([error_ratio(f, r) for f, r in pairs])
    return dict(matrices=len(pairs), timed=len(speeds), left=left, speed=geomean(speeds), slowest=min(speeds, default=float("nan")), best_third=geomean(best_third(speeds)),
                iterations=mean([r["iterations"] / f["iterations"] - 1 for f, r in pairs]), low=mean([1 - r["share_64"] for _, r in pairs]), true_ratio=geomean([r["residual_true"] / f["residual_true"] for f, r in pairs]),
                error_ratio=geomean(errors), error_worst=max(errors, default=float("nan")))


def rows_of(measurements, contestant):
    lines, pairs, lost, missed = [], [], [], []
    for name, got in by_matrix(measurements).items():
        f, r = got.get("f64"), got.get(contestant)
        if not f or not r: continue
        ok = fair(f)
        lines.append([name, r["kind"], f["iterations"], r["iterations"], signed(r["iterations"] / f["iterations"] - 1), times(speed(r)), f"{times(r['speedup_least'])} to {times(r['speedup_most'])}" if speed(r) == speed(r) else "-",
                      " / ".join(percent(r[k]) for k in ("share_64", "share_32", "share_16")), f"{r['residual_true'] / f['residual_true']:.3g}", short(error_ratio(f, r)), r["outcome"], group(f, r) if ok else "listed only"])
        if ok and reached(r): pairs.append((f, r))
        if ok and not reached(r): lost.append(name)
        if ok and r["outcome"] != "converged": missed.append(name)
    return lines, pairs, lost, missed


HEAD = ["matrix", "kind", "FP64 it.", "it.", "more", "speed", "least to most", "FP64 / FP32 / 16 bits", "true residual by FP64's", "error by FP64's", "outcome", "group"]


def summarise(pairs, lost, missed, paper):
    every, sides = figures(pairs), {g: figures([p for p in pairs if group(*p) == g]) for g in ("favourable", "costly", "FP64 alone")}
    text = beside([["speed against own FP64", "1.28" if paper else "-", times(every["speed"])], ["matrices timed, the slowest", "47, 0.92" if paper else "-", f"{every['timed']}, {times(every['slowest'])}"], ["the best third of the matrices", "-", times(every["best_third"])], ["iterations", "+11.4 %" if paper else "-", signed(every["iterations"])],
                   ["read below FP64", "56.9 %" if paper else "-", percent(every["low"], 1)], ["true residual by FP64's", "1.0108" if paper else "-", f"{every['true_ratio']:.4g}"], ["error against the known solution by FP64's: geometric mean, worst", "-", f"{short(every['error_ratio'])}, {short(every['error_worst'])}"],
                   ["favourable group: matrices, speed, iterations", "13, 1.365, +3.2 %" if paper else "-", "{matrices}, {0}, {1}".format(times(sides["favourable"]["speed"]), signed(sides["favourable"]["iterations"]), **sides["favourable"])],
                   ["costly group: matrices, speed, iterations", "not told, 1.09, +31.8 %" if paper else "-", "{matrices}, {0}, {1}".format(times(sides["costly"]["speed"]), signed(sides["costly"]["iterations"]), **sides["costly"])],
                   ["FP64 alone: matrices, speed", "1 (gridgena), 0.98" if paper else "-", "{matrices}, {0}".format(times(sides["FP64 alone"]["speed"]), **sides["FP64 alone"])],
                   ["recursive residual not at the tolerance", "0 of 47" if paper else "-", f"{len(lost)} of {len(pairs) + len(lost)} {' '.join(lost)}"],
                   ["true residual above it", "not told" if paper else "-", f"{len(missed)} of {len(pairs) + len(lost)} {' '.join(missed)}"],
                   ["left out of the means: iterations of FP64's, true residual", "-", ", ".join(every["left"]) or "none"]])
    return text, dict(all=every, groups=sides, lost=lost, missed=missed, reached=len(pairs), residuals=[[r["matrix"], f["residual_true"], r["residual_true"]] for f, r in pairs])


def own_errors(args, got):
    """FP64's errors on halftone's own engine, which sums in another order, by those on the paper's: what the same test leaves to chance."""
    other = {r["matrix"]: r for r in measured(args)["rows"] if r["setting"] == "product" and r["contestant"] == "f64"}
    return known([error_ratio(f, other[f["matrix"]]) for f in (g.get("f64") for g in by_matrix(got).values()) if f and fair(f) and f["matrix"] in other])


def against_fixed(args, got, settled):
    """Behind the guard: policies beside the better of FP32 and 16 bits throughout, and the error budget."""
    lines, ratios = [], {}
    for name, g in by_matrix(got).items():
        f = g.get("f64")
        if not f or not fair(f): continue
        fixed = [g[k] for k in ("f32", "16") if k in g and g[k]["outcome"] == "converged" and speed(g[k]) == speed(g[k])]
        best = max(fixed, key=speed, default=None)
        line = [name, f["nnz"], f["iterations"]]
        for k in ("learned", "time", "settled", "rule", "budget"):
            r = g.get(k)
            ok = r and r["outcome"] == "converged" and speed(r) == speed(r)
            line.append(f"{times(speed(r))}, {signed(r['iterations'] / f['iterations'] - 1)}" if ok else "-")
            for to, other in (("best fixed", best), ("budget", g.get("budget")), ("rule", g.get("rule"))):
                if ok and k != to and other and other["outcome"] == "converged" and speed(other) == speed(other): ratios.setdefault((k, to), []).append(speed(r) / speed(other))
        lines.append([*line, f"{times(speed(best))}, {signed(best['iterations'] / f['iterations'] - 1)} ({best['contestant']})" if best else "-", settled.get(name, "-")])
    text = beside([[f"{k} against the {'better of FP32 and 16 bits' if to == 'best fixed' else to}", "-", f"{times(geomean(v))} ({times(min(v))} to {times(max(v))}, {len(v)} matrices)"] for (k, to), v in ratios.items()])
    head = ["matrix", "nnz", "FP64 it.", *(f"{k}: speed, it." for k in ("learned", "time", "settled", "rule", "budget")), "better of FP32 and 16 bits", "settled is"]
    return [text, table(head, lines)], dict(ratios={f"{k} / {to}": v for (k, to), v in ratios.items()}, rows=lines)


CONTESTANTS = ["f64", "learned", "time", "settled", "rule", "f32", "16", "budget"]


def main(argv=None):
    args = parse(parser(__doc__), argv)
    rows, parts, data = cases(args), [], {}
    for setting, title in (("cg", "As the paper does: recursive residual, guard off"), ("guarded", "Behind the guard: the true residual, certified")):
        got = measure(args, setting, CONTESTANTS, rows)
        for contestant in CONTESTANTS[1:]:
            lines, pairs, lost, missed = rows_of(got, contestant)
            if not lines: continue
            text, figure = summarise(pairs, lost, missed, contestant == "learned" and setting == "cg")
            parts += [f"## {title}: {contestant}\n", text, table(HEAD, lines)]
            data[f"{setting}:{contestant}"] = dict(figure, rows=lines)
    tables, data["fixed"] = against_fixed(args, got, measured(args).get("settled", {}))
    own = data["own_errors"] = own_errors(args, got)
    if not data["fixed"]["ratios"]: tables = ["No times were taken.\n"]
    parts[:0] = ["learned: by the paper's reward, on the matrix itself or a smaller one of its kind; time: by the reward `time`; settled: the fastest behind the guard of these, FP64, FP32 and 16 bits.\n",
                 *([f"FP64's own error on halftone's engine by that on this one: {times(geomean(own))} ({times(min(own))} to {times(max(own))}, {len(own)} matrices).\n"] if own else []),
                 "## Behind the guard: policies against fixed precision\n", *tables]
    publish(args, "precision", "Dynamic precision against own FP64 (Sec. 4.3, Fig. 7)", parts, data)


if __name__ == "__main__": main()
