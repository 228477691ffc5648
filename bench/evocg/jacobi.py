#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sec. 4.6: Jacobi-preconditioned CG with the policies trained without preconditioner.

usage: bench/evocg/jacobi.py [--backend cpu|cuda] [--matrices FOLDER] ...
As the paper does, then behind the guard, which certifies the true residual: the same policies and what was fastest without preconditioner, and, on
halftone's own engine and against FP64 there, `auto` and the policy that the library carries. HBM class: more than 60 MB of FP64 values.
"""
from common import *
from precision import rows_of, figures, HEAD

CACHE = 60e6
GUARDED = {"learned behind the guard": ("jacobi-guarded", "learned"), "settled (the fastest without preconditioner)": ("jacobi-guarded", "settled"), "auto on halftone's own engine": ("jacobi-product", "auto"),
           "the library's policy on halftone's own engine": ("jacobi-product", "library")}


def beyond_cache(pairs): return [(f, r) for f, r in pairs if 8 * f["nnz"] > CACHE]


def against_library(pairs): return geomean([r["time_cusparse_s"] / r["loop_s"] for f, r in pairs if r.get("time_cusparse_s") and worth(f, r)])


def beside_library(lines, pairs):
    """Rows with cuSPARSE's time by FP64's and by the contestant's."""
    out, of = [], {r["matrix"]: (f, r) for f, r in pairs}
    for line in lines:
        theirs, both = of.get(line[0], ({}, {}))[1].get("time_cusparse_s"), of.get(line[0])
        out.append([*line, *(times(theirs / r["loop_s"]) for r in both)] if theirs else [*line, "-", "-"])
    return out


def told(pairs):
    """Speed, iterations and speed against cuSPARSE."""
    f = figures(pairs)
    return f"{len(pairs)}: {times(f['speed'])}, {signed(f['iterations'])}, {times(against_library(pairs))}" if pairs else "none"


def main(argv=None):
    args = parse(parser(__doc__), argv)
    rows = cases(args)
    lines, pairs, lost, missed = rows_of(measure(args, "jacobi", ["f64", "learned"], rows), "learned")
    f, hbm = figures(pairs), {"learned": figures(beyond_cache(pairs))}
    summary = [["both converge (recursive residual)", "47 of 47", f"{len(pairs)} of {len(pairs) + len(lost)}"], ["true residual above the tolerance", "not told", f"{len(missed)} {' '.join(missed)}"], ["speed against own FP64", "1.15", times(f["speed"])],
               ["iterations", "+4.99 %", signed(f["iterations"])], ["speed against cuSPARSE with Jacobi", "4.17", times(against_library(pairs))], ["HBM class: matrices, speed, iterations, against cuSPARSE", "-", told(beyond_cache(pairs))]]
    parts, data = [table(HEAD, lines)], dict(f, lost=lost, missed=missed, cusparse=against_library(pairs), hbm=hbm, rows=lines)
    for title, (setting, contestant) in GUARDED.items():
        got = rows_of(measure(args, setting, ["f64", contestant], rows), contestant)
        certified = [(f, r) for f, r in got[1] if r["outcome"] == "converged"]
        if not got[0]: continue
        if contestant == "auto":
            data["own_f64"] = [against_library([(f, f) for f, _ in v]) for v in (got[1], beyond_cache(got[1]))]
            summary.append(["FP64 on halftone's own engine: against cuSPARSE, HBM class", "-", ", ".join(map(times, data["own_f64"]))])
        summary += [[f"{title}: matrices, speed, iterations, against cuSPARSE", "-", told(certified)], ["HBM class", "-", told(beyond_cache(certified))], ["not certified", "-", f"{len(got[3])} {' '.join(got[3])}"]]
        parts += [f"## {title[0].upper()}{title[1:]}\n", table([*HEAD, "cuSPARSE's time by FP64's", "by this one's"], beside_library(*got[:2]))]
        data[f"{setting}:{contestant}"] = dict(all=figures(certified), cusparse=against_library(certified), hbm=figures(beyond_cache(certified)), hbm_cusparse=against_library(beyond_cache(certified)), missed=got[3], rows=got[0])
    publish(args, "jacobi", "Jacobi-PCG without retraining (Sec. 4.6)", [beside(summary), *parts], data)


if __name__ == "__main__": main()
