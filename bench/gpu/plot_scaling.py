#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draw time an iteration against unknowns, log-log, ours and the peers, from results of bench_gpu_cg.

usage: bench/gpu/plot_scaling.py RESULTS.json ... [-o docs/gpu-scaling.svg] [--match '--points 27'] [--title TEXT]
Rows whose recipe or name contains --match are taken ('' takes all). Needs nothing but Python.
"""
import argparse, json, math
from xml.sax.saxutils import escape

W, H, LEFT, RIGHT, TOP, BOTTOM = 760, 480, 70, 190, 40, 50
COLOURS = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#8c564b", "#e377c2", "#17becf"]
PEERS = [("cuSPARSE + cuBLAS", "us_per_iteration_cusparse", "#555555"), ("the same in a CUDA graph", "us_per_iteration_graph", "#999999")]


def series(rows):
    """name -> (colour, dashed, points sorted by n, one a size: the median)"""
    out, policies = {}, list(dict.fromkeys(r["policy"] for r in rows))
    wanted = [(n, c, True, lambda r, k=k: r.get(k)) for n, k, c in PEERS]
    wanted += [(f"halftone, {p}", COLOURS[i % len(COLOURS)], False, lambda r, p=p: r.get("us_per_iteration") if r["policy"] == p else None) for i, p in enumerate(policies)]
    for name, colour, dashed, value in wanted:
        sizes = {}
        for r in rows:
            if (v := value(r)) and v > 0: sizes.setdefault(r["n"], []).append(v)
        if sizes: out[name] = (colour, dashed, [(n, sorted(v)[len(v) // 2]) for n, v in sorted(sizes.items())])
    return out


def draw(lines, title):
    xs = [x for _, _, pts in lines.values() for x, _ in pts]; ys = [y for _, _, pts in lines.values() for _, y in pts]
    x0, x1 = math.floor(math.log10(min(xs))), math.ceil(math.log10(max(xs) * 1.001)); y0, y1 = math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys) * 1.001))
    px = lambda x: LEFT + (math.log10(x) - x0) / (x1 - x0) * (W - LEFT - RIGHT)
    py = lambda y: H - BOTTOM - (math.log10(y) - y0) / (y1 - y0) * (H - TOP - BOTTOM)
    s = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{W}" height="{H}" viewBox="0 0 {W} {H}" font-family="sans-serif" font-size="12">', f'<rect width="{W}" height="{H}" fill="white"/>',
         f'<text x="{LEFT}" y="24" font-size="15">{escape(title)}</text>']
    for e in range(x0, x1 + 1):
        s.append(f'<line x1="{px(10**e):.1f}" y1="{TOP}" x2="{px(10**e):.1f}" y2="{H-BOTTOM}" stroke="#ddd"/><text x="{px(10**e):.1f}" y="{H-BOTTOM+18}" text-anchor="middle">1e{e}</text>')
    for e in range(y0, y1 + 1):
        s.append(f'<line x1="{LEFT}" y1="{py(10**e):.1f}" x2="{W-RIGHT}" y2="{py(10**e):.1f}" stroke="#ddd"/><text x="{LEFT-8}" y="{py(10**e)+4:.1f}" text-anchor="end">{10**e:g}</text>')
    s.append(f'<text x="{(LEFT+W-RIGHT)/2}" y="{H-10}" text-anchor="middle">unknowns</text><text transform="translate(18,{(TOP+H-BOTTOM)/2}) rotate(-90)" text-anchor="middle">microseconds an iteration</text>')
    for i, (name, (colour, dashed, pts)) in enumerate(lines.items()):
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        s.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2"{dash} points="{" ".join(f"{px(x):.1f},{py(y):.1f}" for x, y in pts)}"/>')
        s += [f'<circle cx="{px(x):.1f}" cy="{py(y):.1f}" r="3" fill="{colour}"><title>{x} unknowns: {y:.2f} us</title></circle>' for x, y in pts]
        s.append(f'<line x1="{W-RIGHT+10}" y1="{TOP+10+20*i}" x2="{W-RIGHT+34}" y2="{TOP+10+20*i}" stroke="{colour}" stroke-width="2"{dash}/><text x="{W-RIGHT+40}" y="{TOP+14+20*i}">{escape(name)}</text>')
    return "\n".join(s + ["</svg>\n"])


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("results", nargs="+"); ap.add_argument("-o", dest="output", default="docs/gpu-scaling.svg"); ap.add_argument("--match", default="--points 27"); ap.add_argument("--title")
    args = ap.parse_args()
    files = [json.load(open(path)) for path in args.results]
    rows = [r for f in files for r in f["rows"] if (args.match in r["recipe"] or args.match in r["matrix"]) and not r.get("error")]
    lines = series(rows)
    if not lines: raise SystemExit(f"no row matches '{args.match}'")
    title = args.title or f"CG on the {files[0]['card']}, {args.match.replace('--points ', '') + '-point stencils' if args.match.startswith('--points') else args.match or 'all matrices'}, {files[0]['date']}"
    with open(args.output, "w") as f: f.write(draw(lines, title))
    print(f"{args.output}: {len(rows)} rows, {len(lines)} lines")


if __name__ == "__main__": main()
