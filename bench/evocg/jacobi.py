#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sec. 4.6: Jacobi-preconditioned CG with the policies trained without preconditioner.

usage: bench/evocg/jacobi.py [--backend cpu|cuda] [--matrices FOLDER] ...
"""
from common import *
from precision import rows_of, figures, HEAD


def main(argv=None):
    args = parse(parser(__doc__), argv)
    rows = cases(args)
    got = measure(args, "jacobi", ["f64", "learned"], rows)
    lines, pairs, lost, missed = rows_of(got, "learned")
    f = figures(pairs)
    peers = [r["time_cusparse_s"] / r["loop_s"] for _, r in pairs if r.get("time_cusparse_s")]
    text = beside([["both converge (recursive residual)", "47 of 47", f"{len(pairs)} of {len(pairs) + len(lost)}"], ["true residual above the tolerance", "not told", f"{len(missed)} {' '.join(missed)}"], ["speed against own FP64", "1.15", times(f["speed"])],
                   ["iterations", "+4.99 %", signed(f["iterations"])], ["speed against cuSPARSE with Jacobi", "4.17", times(geomean(peers))]])
    publish(args, "jacobi", "Jacobi-PCG without retraining (Sec. 4.6)", [text, table(HEAD, lines)], dict(f, lost=lost, missed=missed, cusparse=geomean(peers), rows=lines))


if __name__ == "__main__": main()
