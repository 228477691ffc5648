#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Join results of bench_gpu_cg from several runs (one a class, say) into one file and average again.

usage: bench/gpu/merge_results.py A.json B.json ... -o bench/results/h200-cg-DATE.json
The runs must be of one card, driver and commit; of a matrix, policy, preconditioner and right-hand side that comes twice the later
file's row stays. Each row keeps the bandwidth that its own run measured.
"""
import argparse, json, pathlib, sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from means import geomean

GROUP = ("class", "policy", "precond")
MEANS = ("speedup_cusparse", "speedup_graph", "speedup_f64", "share_of_read_bandwidth")


def mean_or_none(values):
    """JSON knows no NaN."""
    mean = geomean(values)
    return mean if mean == mean else None


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("results", nargs="+"); ap.add_argument("-o", dest="output", required=True)
    args = ap.parse_args()
    files = [json.load(open(path)) for path in args.results]
    for key in ("card", "driver", "commit"):
        if len({f[key] for f in files}) > 1: raise SystemExit(f"the runs differ in {key}: {sorted({f[key] for f in files})}")
    rows = {}
    for f in files:
        for r in f["rows"]:
            r = dict(r, rhs=f["rhs"], read_bandwidth_gbytes_per_s=f["read_bandwidth_gbytes_per_s"])
            rows[(r["matrix"], r["policy"], r["precond"], r["rhs"])] = r
    rows, groups = list(rows.values()), {}
    for r in rows: groups.setdefault(tuple(r.get(k, "") for k in GROUP + ("rhs",)), []).append(r)
    summary = [dict(zip(GROUP + ("rhs",), group), rows=len(g), averaged=sum(r["averaged"] == 1 for r in g), **{m: mean_or_none([r[m] for r in g if r["averaged"] == 1]) for m in MEANS}) for group, g in groups.items()]
    head = {k: v for k, v in files[0].items() if k not in ("rows", "summary", "rhs")}
    with open(args.output, "w") as out:
        text = json.dumps(head, indent=1)[:-2]
        out.write(text + ',\n "rows": [\n  ' + ",\n  ".join(map(json.dumps, rows)) + '\n ],\n "summary": [\n  ' + ",\n  ".join(map(json.dumps, summary)) + "\n ]\n}\n")
    print(f"{args.output}: {len(rows)} rows")


if __name__ == "__main__": main()
