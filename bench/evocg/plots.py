#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""One page of plots from the results: speed by matrix, GFLOPS against nonzeros, of one solve residuals and the precision mix, true residuals
against FP64's (Fig. 7(d)), trajectories (Figs. 8 and 9), iterations with the policy that was carried over, and what the policy and Tile-CSC cost
(Fig. 10).

usage: bench/evocg/plots.py [--results bench/results/evocg] [-o docs/evocg-plots.svg] [--curves NAME MATRIX.npz POLICY.safetensors] [--trajectories OUT]
--curves emulates the solve in NumPy (emulate.py), decision by decision, and keeps what is drawn in RESULTS/curves.json; --trajectories does so with
the matrices and policies that the experiments left in OUT, and keeps RESULTS/figures.json.
"""
import argparse
from xml.sax.saxutils import escape
from common import *

COLOURS = ["#1b6ca8", "#d1495b", "#e09f3e", "#2e933c", "#555555", "#a0a0a0"]
LEVELS = {"FP64": "#1b6ca8", "FP32": "#e09f3e", "16 bits": "#d1495b"}
DASHES = "5 4"
W, H, LEFT, RIGHT, TOP, BOTTOM = 600, 390, 58, 22, 58, 44


class Panel:
    """A coordinate system; axes are linear or logarithmic (decades)."""
    def __init__(self, title, x, y, log_x=False, log_y=False, x_title="", y_title="", bottom=BOTTOM):
        self.x, self.y, self.log, self.bottom = x, y, (log_x, log_y), bottom
        self.out = [f'<text x="{LEFT}" y="20" font-size="15">{escape(title)}</text>', f'<text x="{(LEFT + W - RIGHT) / 2}" y="{H - 8}" text-anchor="middle">{escape(x_title)}</text>',
                    f'<text transform="translate(14,{(TOP + H - BOTTOM) / 2}) rotate(-90)" text-anchor="middle">{escape(y_title)}</text>']

    def at(self, x, y):
        share = [(math.log10(v) - math.log10(r[0])) / (math.log10(r[1]) - math.log10(r[0])) if log else (v - r[0]) / (r[1] - r[0]) for v, r, log in ((x, self.x, self.log[0]), (y, self.y, self.log[1]))]
        share = [min(max(s, 0), 1) for s in share]
        return LEFT + share[0] * (W - LEFT - RIGHT), H - self.bottom - share[1] * (H - TOP - self.bottom)

    def grid(self, xs=(), ys=(), name=lambda v: f"{v:g}"):
        for v in xs:
            px, _ = self.at(v, self.y[0])
            self.out.append(f'<line x1="{px:.1f}" y1="{TOP}" x2="{px:.1f}" y2="{H - self.bottom}" stroke="#e4e4e4"/><text x="{px:.1f}" y="{H - self.bottom + 15}" text-anchor="middle">{name(v)}</text>')
        for v in ys:
            _, py = self.at(self.x[0], v)
            self.out.append(f'<line x1="{LEFT}" y1="{py:.1f}" x2="{W - RIGHT}" y2="{py:.1f}" stroke="#e4e4e4"/><text x="{LEFT - 6}" y="{py + 4:.1f}" text-anchor="end">{name(v)}</text>')

    def line(self, points, colour, dashes="", width=2):
        dash = f' stroke-dasharray="{dashes}"' if dashes else ""
        self.out.append(f'<polyline fill="none" stroke="{colour}" stroke-width="{width}"{dash} points="{" ".join("%.1f,%.1f" % self.at(*p) for p in points)}"/>')

    def dots(self, points, colour, names=None):
        for i, p in enumerate(points):
            x, y = self.at(*p)
            self.out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.6" fill="{colour}" fill-opacity="0.85"><title>{escape(names[i] if names else "")} {p[1]:.3g}</title></circle>')

    def area(self, lower, upper, colour):
        points = [self.at(*p) for p in upper] + [self.at(*p) for p in reversed(lower)]
        self.out.append(f'<polygon fill="{colour}" points="{" ".join("%.1f,%.1f" % p for p in points)}"/>')

    def legend(self, entries):
        x, y = LEFT, 38
        for name, colour, dashed in entries:
            dash = ' stroke-dasharray="5 4"' if dashed else ""
            self.out.append(f'<line x1="{x}" y1="{y - 4}" x2="{x + 18}" y2="{y - 4}" stroke="{colour}" stroke-width="3"{dash}/><text x="{x + 23}" y="{y}">{escape(name)}</text>')
            x += 40 + 6.3 * len(name)
            if x > W - 130: x, y = LEFT, y + 15


def solves(row):
    """Whether a row of the tables solves its matrix: `worth` in common.py, but for the residual, of which the row has the ratio alone."""
    return row[10] in ("converged", "recursive_only") and row[3] >= 0.5 * row[2]


def speeds(data):
    """By matrix, in the order of their nonzeros: FP64's time over the policy's."""
    fixed = {r[0]: r for r in data["fixed"]["rows"]}
    names = sorted(fixed, key=lambda n: fixed[n][1])
    who = {"learned, unguarded": ("cg:learned", 5), "learned, guarded": ("guarded:learned", 5), "better of FP32, 16 bits, guarded": None, "settled": ("guarded:settled", 5)}
    series = {}
    for label, source in who.items():
        if source and source[0] in data: series[label] = {r[0]: float(r[source[1]]) for r in data[source[0]]["rows"] if r[source[1]] not in ("-", None) and solves(r)}
        if not source: series[label] = {n: float(fixed[n][8].split(",")[0]) for n in names if fixed[n][8] != "-"}
    values = [v for s in series.values() for v in s.values()]
    p = Panel("Speed against own FP64, the paper's engine on the H200", (-0.5, len(names) - 0.5), (min([0.4, *values]), max([1.4, *values]) * 1.02), y_title="times FP64", bottom=118)
    p.grid(ys=[v / 10 for v in range(4, 30, 2) if p.y[0] <= v / 10 <= p.y[1]])
    p.line([(p.x[0], 1), (p.x[1], 1)], "#333", width=1)
    p.line([(p.x[0], 1.28), (p.x[1], 1.28)], COLOURS[4], DASHES, 1.5)
    for (label, s), colour in zip(series.items(), COLOURS): p.dots([(i, s[n]) for i, n in enumerate(names) if n in s], colour, [f"{n}, {label}:" for n in names if n in s])
    p.legend([(l, c, False) for l, c in zip(series, COLOURS)] + [("the paper's 1.28", COLOURS[4], True)])
    timed = {n for s in series.values() for n in s}
    if set(names) - timed: p.out.append(f'<text x="{LEFT + 6}" y="{H - p.bottom - 8}" fill="#888">no dots: solved once, which is no measurement of time, or not converged with any of them</text>')
    for i, n in enumerate(names):
        x, _ = p.at(i, p.y[0])
        p.out.append(f'<text transform="translate({x + 3:.1f},{H - p.bottom + 6}) rotate(-90)" font-size="10" text-anchor="end">{escape(n)}</text>')
    return p


def gflops(points):
    who = {"paper's engine, learned": "learned, paper's engine", "paper's engine, FP64": "FP64, paper's engine", "halftone, auto": "auto", "cuSPARSE": "cuSPARSE + cuBLAS", "cuSPARSE in a graph": "the same in a graph"}
    series = {name: points[k] for k, name in who.items() if k in points}
    every = [v for s in series.values() for v in s]
    bound = lambda k: (10 ** math.floor(math.log10(min(v[k] for v in every))), 10 ** math.ceil(math.log10(max(v[k] for v in every))))
    p = Panel("GFLOPS of the whole solve on the H200", bound(0), bound(1), True, True, "nonzeros", "GFLOPS")
    decades = lambda r: [10.0 ** e for e in range(round(math.log10(r[0])), round(math.log10(r[1])) + 1)]
    p.grid(decades(p.x), decades(p.y), lambda v: f"{v:g}" if v < 1e4 else f"1e{round(math.log10(v))}")
    for (label, s), colour in zip(series.items(), COLOURS): p.dots(s, colour, [f"{label}:" for _ in s])
    p.legend([(l, c, False) for l, c in zip(series, COLOURS)])
    return p


def ticks(most):
    step = next(s for e in range(7) for s in (10 ** e, 2 * 10 ** e, 5 * 10 ** e) if most / s <= 10)
    return list(range(0, int(most) + 1, step))


def residuals(curves):
    most = max(len(curves[k]) for k in curves if k.endswith(("recursive", "true")))
    p = Panel(f"Residuals of {curves['matrix']}: recursive (dashed) and true", (0, most), (1e-11, 10), log_y=True, x_title="iterations", y_title="by ||b||")
    p.grid(ticks(most), [10.0 ** e for e in range(-10, 2, 2)], lambda v: f"{v:g}" if v >= 1 or v == 0 else f"1e{round(math.log10(v))}")
    who = {"FP64": "f64", "learned, unguarded": "learned", "learned, residual replaced": "guarded"}
    colours = (COLOURS[0], COLOURS[1], COLOURS[3])
    for key, colour in zip(who.values(), colours): p.line(list(enumerate(curves[f"{key}_true"])), colour)
    for key, colour in zip(who.values(), colours): p.line(list(enumerate(curves[f"{key}_recursive"])), colour, DASHES, 1.4)
    p.legend([(l, c, False) for l, c in zip(who, colours)])
    return p


def mixture(curves):
    shares = curves["mix"]
    p = Panel(f"Precision mix of the learned policy on {curves['matrix']}", (0, len(shares)), (0, 1), x_title="iterations", y_title="share of the column blocks")
    lower = [(k, 0.0) for k in range(len(shares))]
    for i, colour in enumerate(LEVELS.values()):
        upper = [(k, low + s[i]) for (k, low), s in zip(lower, shares)]
        p.area(lower, upper, colour)
        lower = upper
    p.grid(ticks(len(shares)), [0, 0.25, 0.5, 0.75, 1])
    p.legend([(n, c, False) for n, c in LEVELS.items()])
    return p


def power(v): return f"1e{round(math.log10(v))}"


def true_residuals(data):
    """Fig. 7(d): each policy's against FP64's, with y = x."""
    series = {label: [r for r in data[key]["residuals"] if r[2] > 0] for label, key in (("learned, unguarded", "cg:learned"), ("learned, guarded", "guarded:learned")) if key in data}
    every = [v for s in series.values() for r in s for v in r[1:]]
    low, high = 10.0 ** math.floor(math.log10(min(every))), 10.0 ** math.ceil(math.log10(max(every)))
    p = Panel("True residual by ||b||, against that of FP64 (Fig. 7(d))", (low, 100 * low), (low, high), True, True, "FP64", "policy")
    p.grid([low, 10 * low, 100 * low], [10.0 ** e for e in range(round(math.log10(low)), round(math.log10(high)) + 1, 2)], power)
    p.line([(low, low), (100 * low, 100 * low)], "#333", DASHES, 1)
    for (label, s), colour in zip(series.items(), COLOURS[1:]): p.dots([r[1:] for r in s], colour, [f"{r[0]}, {label}:" for r in s])
    p.legend([*((l, c, False) for l, c in zip(series, COLOURS[1:])), ("y = x", "#333", True)])
    return p


def carried_over(rows):
    """Fig. 9: iterations by FP64's, of the matrix's own policy and of mesh2e1's."""
    rows = [r for r in rows if r[9] not in ("listed only", "not converged") and r[3] != "-"]
    p = Panel("Iterations by FP64's, unguarded: own policy and mesh2e1's (Fig. 9)", (-0.5, len(rows) - 0.5), (0, 2), y_title="times FP64", bottom=118)
    p.grid(ys=[0, 0.5, 1, 1.5, 2])
    p.line([(p.x[0], 1), (p.x[1], 1)], "#333", width=1)
    for who, column, colour in (("own", 3, COLOURS[1]), ("mesh2e1's", 4, COLOURS[0])):
        got = [(i, r) for i, r in enumerate(rows) if r[column] >= WORTH_ITERATIONS * r[2]] # fewer: it broke down
        p.dots([(i, r[column] / r[2]) for i, r in got], colour, [f"{r[0]}, {who}:" for _, r in got])
    p.legend([("own policy", COLOURS[1], False), ("mesh2e1's", COLOURS[0], False)])
    for i, r in enumerate(rows):
        x, _ = p.at(i, 0)
        p.out.append(f'<text transform="translate({x + 3:.1f},{H - p.bottom + 6}) rotate(-90)" font-size="10" text-anchor="end">{escape(r[0])}</text>')
    return p


def cost(points, title, top, y_title, mark, mark_name):
    """Fig. 10: what it costs against nonzeros, with the paper's figure. points: nonzeros, cost, matrix."""
    x = (10.0 ** math.floor(math.log10(min(v[0] for v in points))), 10.0 ** math.ceil(math.log10(max(v[0] for v in points))))
    p = Panel(title, x, (min(0, *(v[1] for v in points)), top), True, x_title="nonzeros", y_title=y_title)
    p.grid([10.0 ** e for e in range(round(math.log10(x[0])), round(math.log10(x[1])) + 1)], name=power)
    p.grid(ys=[v for v in range(math.ceil(p.y[0]), top + 1)])
    p.line([(x[0], mark), (x[1], mark)], COLOURS[4], DASHES, 1.5)
    p.dots([(a, min(b, top)) for a, b, _ in points], COLOURS[0], [f"{name}, {b:.3g}:" for _, b, name in points])
    p.legend([(mark_name, COLOURS[4], True)])
    beyond = [f"{name} {b:.1f}" for _, b, name in points if b > top]
    if beyond: p.out.append(f'<text x="{LEFT + 6}" y="{TOP + 16}" fill="#888">beyond: {escape(", ".join(beyond))}</text>')
    return p


def trajectories(title, solves, also=""):
    """Recursive residuals; a colour a matrix, FP64 solid, its own policy dashed, the one that was carried over dotted."""
    most = max(points[-1][0] for s in solves.values() for points in s.values())
    p = Panel(title, (0, most), (1e-11, 10), log_y=True, x_title="iterations: FP64 solid, own policy dashed" + also, y_title="recursive residual by ||b||")
    p.grid(ticks(most), [10.0 ** e for e in range(-10, 2, 2)], lambda v: f"{v:g}" if v >= 1 or v == 0 else power(v))
    for (name, s), colour in zip(solves.items(), COLOURS):
        for who, dash in (("FP64", ""), ("learned", "7 4"), ("mesh2e1", "2 3")):
            if who in s: p.line(s[who], colour, dash, 1.6)
    p.legend([(name, colour, False) for name, colour in zip(solves, COLOURS)])
    return p


def emulated(name, matrix, policy):
    import numpy as np, emulate
    a = load(matrix)
    products, network = [a, emulate.rounded(a, "fp32"), emulate.rounded(a, "bf16")], emulate.Network(policy)
    out = dict(matrix=name)
    for key, decide, drop in (("f64", None, 0), ("learned", lambda k, p, r, alpha: network.decide(p), 0), ("guarded", lambda k, p, r, alpha: network.decide(p), 0.03)):
        truths = [1.0]
        got = emulate.solve(a, products, decide, drop=drop, truths=truths)
        out |= {f"{key}_recursive": [float(f"{v:.3e}") for v in got["history"]], f"{key}_true": [float(f"{v:.3e}") for v in truths]}
        if key == "learned": out["mix"] = [[round(float(np.mean(d == l)), 4) for l in range(3)] for d in got["decisions"]]
    return out


FIGURES = {"Fig. 8": ("Dubcova2", "wathen100", "bodyy4", "ted_B_unscaled"), "Fig. 9": ("minsurfo", "qa8fm", "thermomech_dM", "wathen120", "Dubcova1")}


def thinned(history):
    """Some 120 points of it and the last, as [iteration, residual]."""
    step = max(len(history) // 120, 1)
    return [[k, float(f"{v:.3e}")] for k, v in enumerate(history) if k % step == 0 or k == len(history) - 1]


def emulated_trajectories(out):
    """Of Fig. 8 with the matrix's own policy, of Fig. 9 with mesh2e1's too; what has no policy in OUT is left out."""
    import emulate
    figures = {}
    for figure, names in FIGURES.items():
        args = parse(parser(__doc__), ["--out", out, "--only", ",".join(names), "--no-train"])
        for case in (c for n in names for c in cases(args) if c["name"] == n):
            own = policy(args, case["name"] if case["policy"] == "-" else case["policy"])
            if own is None: continue
            a = load(matrix(args, case))
            products = [a, emulate.rounded(a, "fp32"), emulate.rounded(a, "bf16")]
            got = figures.setdefault(figure, {})[case["name"]] = {"FP64": thinned(emulate.solve(a, products)["history"])}
            for who, file in (("learned", own), *([("mesh2e1", policy(args, args.transfer))] if figure == "Fig. 9" else [])):
                network = emulate.Network(file)
                got[who] = thinned(emulate.solve(a, products, lambda k, p, r, alpha: network.decide(p))["history"])
    return figures


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--results", type=pathlib.Path, default=ROOT / "bench/results/evocg")
    ap.add_argument("-o", dest="output", default=str(ROOT / "docs/evocg-plots.svg"))
    ap.add_argument("--curves", nargs=3, metavar=("NAME", "MATRIX", "POLICY"))
    ap.add_argument("--trajectories", metavar="OUT")
    args = ap.parse_args()
    kept, figures = args.results / "curves.json", args.results / "figures.json"
    if args.trajectories: figures.write_text(json.dumps(emulated_trajectories(args.trajectories)))
    if args.curves: kept.write_text(json.dumps(emulated(*args.curves)))
    curves = json.loads(kept.read_text())
    read = lambda name: json.loads((args.results / f"{name}-cuda.json").read_text())
    precision, costs = read("precision"), read("cost")
    panels = [speeds(precision), gflops(read("endtoend")["points"]), residuals(curves), mixture(curves)]
    solves = json.loads(figures.read_text())
    panels += [trajectories("Trajectories of Fig. 8, unguarded", solves["Fig. 8"]), trajectories("Trajectories of Fig. 9, unguarded", solves["Fig. 9"], ", mesh2e1's dotted")]
    panels += [true_residuals(precision), carried_over(read("transfer")["cg"]["rows"]),
              cost([(r[3], float(r[4].split()[0]), r[0]) for r in costs["rows"] if r[4] != "-"], "The policy's part of the time, looking at its K* (Fig. 10(a))", 4, "per cent", 1.09, "the paper's mean, 1.09 %"),
              cost([(r[3], m, r[0]) for r, m in zip(costs["rows"], costs["memory"])], "Tile-CSC by CSR, bytes (Fig. 10(b))", 4, "times CSR", 1.84, "the paper's 1.84")]
    height = len(panels) // 2 * H
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{2 * W}" height="{height}" viewBox="0 0 {2 * W} {height}" font-family="sans-serif" font-size="11"><rect width="{2 * W}" height="{height}" fill="white"/>']
    for i, p in enumerate(panels): out += [f'<g transform="translate({i % 2 * W},{i // 2 * H})">', *p.out, "</g>"]
    pathlib.Path(args.output).write_text("\n".join(out + ["</svg>\n"]))


if __name__ == "__main__": main()
