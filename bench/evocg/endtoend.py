#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sec. 4.2, Figs. 2 and 6: end to end against peers, GFLOPS against nonzeros, and the product's share of FP64 CG.

usage: bench/evocg/endtoend.py [--backend cpu|cuda] [--set gpu] [--matrices FOLDER] ...
Peers: on a GPU cuSPARSE + cuBLAS with scalars on the host (the CUDA sample's form, the paper's baseline) and in a CUDA graph, both from
bench_gpu_cg, and PETSc and Ginkgo where gpu_batch.sh ran them (bench/peers); on the CPU PETSc's KSPCG on two processes (bench/peers/petsc_cg.c) where
it is installed.
Contestants: the paper's engine in FP64 and with the learned policy (guard off), and what halftone does by itself (FP64, auto).
Flops: 2 a nonzero and 12 a row an iteration.
"""
import sys, tempfile
from common import *

sys.path.insert(0, str(HERE.parent))
SLOWER = 1.02


def petsc(args, rows):
    """Milliseconds and the product's share, of PETSc on the CPU."""
    import cpu_cg
    file = args.out / "petsc.json"
    got = json.loads(file.read_text()) if file.exists() else {}
    if args.measured or not any(c["name"] not in got for c in rows): return got
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        try: peer = cpu_cg.build_peer(folder)
        except SystemExit as e: print(f"endtoend: there is no peer on the CPU: {e}", file=sys.stderr); return got
        for c in rows:
            if c["name"] in got or late(args): continue
            npz = matrix(args, c)
            if not str(npz).endswith(".npz"):
                subprocess.run([args.halftone, "convert", npz, "-o", folder / "A.npz", "--quiet"], check=True); npz = folder / "A.npz"
            cpu_cg.to_petsc(npz, folder / "A.petsc")
            runs = [cpu_cg.run_petsc(peer, folder / "A.petsc", "none") for _ in range(args.pairs)]
            got[c["name"]] = dict(runs[-1], time_s=median([r["time_s"] for r in runs]), product_s=median([r["product_s"] for r in runs]))
    file.write_text(json.dumps(got, indent=1))
    return got


def gflops(r, seconds): return 1e-9 * (2 * r["nnz"] + 12 * r["n"]) * r["iterations"] / seconds


def chart(points, path, title):
    """GFLOPS against nonzeros, both axes logarithmic, as SVG. points: {name: [(nnz, gflops)]}."""
    colours = ["#1b6ca8", "#d1495b", "#edae49", "#555555", "#999999", "#2e933c"]
    everything = [p for v in points.values() for p in v]
    if not everything: return
    lo = [math.floor(math.log10(min(p[k] for p in everything))) for k in (0, 1)]
    hi = [math.ceil(math.log10(max(p[k] for p in everything)) + 1e-9) for k in (0, 1)]
    w, h, m = 640, 400, 50
    at = lambda p: tuple(m + (math.log10(p[k]) - lo[k]) / max(hi[k] - lo[k], 1) * ((w if k == 0 else h) - 2 * m) for k in (0, 1))
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" font-family="sans-serif" font-size="12"><rect width="{w}" height="{h}" fill="white"/><text x="{m}" y="20">{title}</text>']
    for k in (0, 1):
        for e in range(lo[k], hi[k] + 1):
            x, y = at((10.0 ** e, 10.0 ** lo[1]) if k == 0 else (10.0 ** lo[0], 10.0 ** e))
            out.append(f'<text x="{x if k == 0 else x - 8:.0f}" y="{h - y + 18 if k == 0 else h - y + 4:.0f}" text-anchor="{"middle" if k == 0 else "end"}">1e{e}</text>')
            far = at((10.0 ** e, 10.0 ** hi[1]) if k == 0 else (10.0 ** hi[0], 10.0 ** e))
            out.append(f'<line x1="{x:.0f}" y1="{h - y:.0f}" x2="{far[0]:.0f}" y2="{h - far[1]:.0f}" stroke="#ddd"/>')
    for i, (name, v) in enumerate(points.items()):
        out += [f'<circle cx="{at(p)[0]:.1f}" cy="{h - at(p)[1]:.1f}" r="3.5" fill="{colours[i % 6]}"/>' for p in v]
        out.append(f'<text x="{w - m - 140}" y="{40 + 15 * i}" fill="{colours[i % 6]}">{name}</text>')
    path.write_text("\n".join(out + ["</svg>"]))


def against_own(own):
    """Of halftone by itself: where `auto` takes more than 1.02 times FP64's time, and where it alone is not certified."""
    slower, lost = [], []
    for name, g in own.items():
        f, a = g.get("f64"), g.get("auto")
        if not f or not a or f["outcome"] != "converged": continue
        if a["loop_s"] > SLOWER * f["loop_s"]: slower.append(f"{name} {times(a['loop_s'] / f['loop_s'])}")
        if a["outcome"] != "converged": lost.append(f"{name} ({a['outcome']})")
    return slower, lost


BESIDE = {"petsc": "PETSc", "ginkgo": "Ginkgo", "sample": "cuSPARSE", "graph": "cuSPARSE in a graph"}


def beside_programs(args, rows):
    """PETSc and Ginkgo beside ours, each in turns with the same matrix: a table, and times by ours. The paper's engine and halftone's own ran after each other, each with peers of its own."""
    kept = {s: by_matrix([r for r in measured(args)["rows"] if r["setting"] == s]) for s in ("peers", "peers-product")}
    lines, ratios, us = [], {}, lambda r: f"{1e6 * r['loop_s'] / r['iterations']:.1f}" if r and r["iterations"] > 0 else "-"
    for name in (c["name"] for c in rows if "f64" in kept["peers"].get(c["name"], {})):
        line = [name]
        for setting, ours in (("peers", ("f64", "learned")), ("peers-product", ("f64", "auto"))):
            g = kept[setting].get(name, {})
            seconds = {k: g[k]["loop_s"] for k in PROGRAMS if k in g and g[k]["outcome"] == "converged"}
            if "f64" in g: seconds.update((k, s) for k, s in (("sample", g["f64"]["time_cusparse_s"]), ("graph", g["f64"]["time_graph_s"])) if s)
            if setting == "peers": line += [g["f64"]["nnz"], *(us(g.get(k)) for k in PROGRAMS), *(f"{g['f64'][k]:.1f}" if g["f64"].get(k) else "-" for k in ("us_per_iteration_cusparse", "us_per_iteration_graph"))]
            line += [us(g.get(k)) for k in ours]
            for k in ours:
                r = g.get(k)
                if not r or not worth(g["f64"], r): continue
                for peer, s in seconds.items(): ratios.setdefault((f"{setting}:{k}", peer), []).append(s / r["loop_s"])
        lines.append(line)
    return lines, ratios


def main(argv=None):
    args = parse(parser(__doc__), argv)
    rows = cases(args)
    cg = by_matrix(measure(args, "cg", ["f64", "learned", "rule", "f32", "16", "budget"], rows))
    own = by_matrix(measure(args, "product", ["f64", "auto"], rows))
    peers = petsc(args, rows) if args.backend == "cpu" else {}
    lines, ratios, shares, points, counts, left = [], {}, [], {}, [], []
    for c in rows:
        name, f, l, d, a = c["name"], *(cg.get(c["name"], {}).get(k) for k in ("f64", "learned")), *(own.get(c["name"], {}).get(k) for k in ("f64", "auto"))
        if not f: continue
        them = {"PETSc": peers[name]["time_s"]} if name in peers else {"cuSPARSE": f.get("time_cusparse_s"), "cuSPARSE in a graph": f.get("time_graph_s")}
        if name in peers: share = peers[name]["product_s"] * peers[name]["iterations"] / peers[name]["time_s"]
        else: share = f["us_product_cusparse"] / f["us_per_iteration_cusparse"] if f.get("us_product_cusparse") else None
        engine = "paper's engine" if args.backend == "cuda" else "Tile-CSC, textbook loop"
        us = {f"{engine}, FP64": f, f"{engine}, learned": l, "halftone, FP64": d, "halftone, auto": a}
        for who, r in us.items():
            if not r or not r["loop_s"]: continue # not run, or broken down at once
            points.setdefault(who, []).append((r["nnz"], gflops(r, r["loop_s"])))
            for peer, t in them.items():
                if t and fair(f) and worth(f, r): ratios.setdefault((who, peer), []).append(t / r["loop_s"])
        for peer, t in them.items():
            if t: points.setdefault(peer, []).append((f["nnz"], gflops(f, t)))
        if share and fair(f): shares.append(min(share, 1))
        them_it = peers[name]["iterations"] if name in peers else f.get("iterations_cusparse")
        if them_it and them_it > 0 and fair(f): counts.append([name, f["iterations"], them_it])
        if l and fair(f) and reached(l): left += left_out([(f, l)])
        lines.append([name, c["kind"], f["n"], f["nnz"], f["iterations"], them_it if them_it and them_it > 0 else "-", *(f"{1e3 * r['loop_s']:.2f}" if r else "-" for r in us.values()), *(f"{1e3 * t:.2f}" if t else "-" for t in them.values()), percent(share), f"{gflops(f, f['loop_s']):.2f}", f"{gflops(a, a['loop_s']):.2f}" if a else "-"])
    paper = {"cuSPARSE": "2.52 (at most 4.47)", "PETSc": "3.06 (on the GPU)"}
    summary = [[f"{who} against {peer}", paper.get(peer, "-") if who.endswith("learned") else "-", f"{times(geomean(v))} ({times(min(v))} to {times(max(v))}, {len(v)} matrices)"] for (who, peer), v in ratios.items()]
    summary.append(["product's share of FP64 CG, mean", "67.1 %", f"{percent(mean(shares), 1)} ({'PETSc' if args.backend == 'cpu' else 'cuSPARSE, sample form'})"])
    off = [abs(ours / theirs - 1) for _, ours, theirs in counts]
    if off: summary.append(["iterations of FP64 by the peer's: the same, differ by more than 1 %, most", "the same on 47", f"{sum(o == 0 for o in off)}, {sum(o > 0.01 for o in off)} of {len(off)}, {percent(max(off), 1)}"])
    slower, lost = against_own(own)
    summary.append(["auto slower than halftone's FP64 by more than 2 %", "-", ", ".join(slower) or "none"])
    summary.append(["auto not certified where FP64 is", "-", ", ".join(lost) or "none"])
    summary.append(["learned left out of the means: iterations of FP64's, true residual", "-", ", ".join(left) or "none"])
    chart(points, args.out / f"endtoend-{args.backend}.svg", "GFLOPS against nonzeros")
    head = ["matrix", "kind", "n", "nnz", "FP64 it.", "peer's it.", "Tile-CSC FP64 ms", "learned ms", "halftone FP64 ms", "auto ms", *(["PETSc ms"] if args.backend == "cpu" else ["cuSPARSE ms", "graph ms"]), "product's share", "GFLOPS, Tile-CSC FP64", "GFLOPS, auto"]
    if args.backend == "cpu" and not peers: head.insert(11, "-")
    parts, (beside_lines, beside_ratios) = [beside(summary), table(head, lines)], beside_programs(args, rows)
    if beside_lines:
        paper = {"petsc": "3.06", "ginkgo": "2.48", "sample": "2.52"}
        who = {"peers:f64": "paper's engine, FP64", "peers:learned": "paper's engine, learned", "peers-product:f64": "halftone, FP64", "peers-product:auto": "halftone, auto"}
        parts += ["## Beside PETSc and Ginkgo in one run\n", beside([[f"{who[k]} against {BESIDE[peer]}", paper.get(peer, "-") if k == "peers:learned" else "-", f"{times(geomean(v))} ({times(min(v))} to {times(max(v))}, {len(v)} matrices)"] for (k, peer), v in beside_ratios.items()]),
                  "Microseconds an iteration:\n", table(["matrix", "nnz", "PETSc", "Ginkgo", "cuSPARSE", "graph", "paper's engine, FP64", "learned", "halftone, FP64", "auto"], beside_lines)]
    publish(args, "endtoend", "End to end against peers (Sec. 4.2, Figs. 2 and 6)", parts, dict(beside={f"{k} / {p}": v for (k, p), v in beside_ratios.items()}, ratios={f"{w} / {p}": v for (w, p), v in ratios.items()}, shares=shares, points=points, iterations=counts, slower=slower, lost=lost, left=left, rows=lines))


if __name__ == "__main__": main()
