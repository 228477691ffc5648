#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Join results of bench_gpu_cg from several runs (one a class, say) into one file, average again, and write the table of all rows beside it.

usage: bench/gpu/merge_results.py A.json B.json ... -o bench/results/h200-cg-DATE.json
Writes h200-cg-DATE.md, too. The runs must be of one card, driver and commit; of a matrix, policy, preconditioner and right-hand side that comes twice the later
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


def times(value):
    return number(value, 2 if value is not None and value < 10 else 1)


def number(value, digits, factor=1):
    return "-" if value is None or value < 0 else f"{factor * value:,.{digits}f}"


def ratio(row, above, below):
    return row[above] / row[below] if row.get(above) and row.get(below) else None


COLUMNS = (
    ("matrix", lambda r: r["matrix"]),
    ("n", lambda r: number(r["n"], 0)),
    ("nonzeros", lambda r: number(r["nnz"], 0)),
    ("precond", lambda r: r["precond"]),
    ("policy", lambda r: r["policy"]),
    ("iterations", lambda r: number(r["iterations"], 0)),
    ("time, ms", lambda r: number(r["time_s"], 2, 1e3)),
    ("us an iteration", lambda r: number(r["us_per_iteration"], 1)),
    ("floor, us", lambda r: number(r.get("floor_us"), 1)),
    ("GB/s", lambda r: number(r["gbytes_per_s"], 0)),
    ("share of read, %", lambda r: number(r["share_of_read_bandwidth"], 0, 100)),
    ("storage by CSR", lambda r: number(ratio(r, "bytes_matrix", "bytes_csr"), 2)),
    ("set-up, ms", lambda r: number(r["time_setup_s"], 1, 1e3)),
    ("by sample", lambda r: times(r["speedup_cusparse"])),
    ("by graph", lambda r: times(r["speedup_graph"])),
    ("by own FP64", lambda r: times(r["speedup_f64"])),
    ("outcome", lambda r: r["error"] or r["outcome"]),
)
TABLE = """# CG on one GPU, matrix by matrix

{card}, driver {driver}, {libraries}, commit {commit}, {date}; written by `bench/gpu/merge_results.py` from `{source}`. What is timed, which bytes
are counted and what the floor is: [bench/gpu/README.md](../gpu/README.md). Speeds are the library forms', or our FP64's, time over this row's.
"""


def write_table(path, head, rows, source):
    groups = {}
    for r in rows: groups.setdefault((r["class"], r["rhs"]), []).append(r)
    with open(path, "w") as out:
        out.write(TABLE.format(source=source, **head))
        for (size, rhs), group in groups.items():
            out.write(f"\n## {size}, b = {rhs}\n\n| " + " | ".join(name for name, _ in COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|\n")
            for r in group: out.write("| " + " | ".join(text(r) for _, text in COLUMNS) + " |\n")


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
            r = {**{k: f[k] for k in ("rhs", "read_bandwidth_gbytes_per_s") if k in f}, **r}  # a joined file's rows have them
            rows[(r["matrix"], r["policy"], r["precond"], r["rhs"])] = r
    rows, groups = list(rows.values()), {}
    for r in rows: groups.setdefault(tuple(r.get(k, "") for k in GROUP + ("rhs",)), []).append(r)
    summary = [dict(zip(GROUP + ("rhs",), group), rows=len(g), averaged=sum(r["averaged"] == 1 for r in g), **{m: mean_or_none([r[m] for r in g if r["averaged"] == 1]) for m in MEANS}) for group, g in groups.items()]
    head = {k: v for k, v in files[0].items() if k not in ("rows", "summary", "rhs")}
    with open(args.output, "w") as out:
        text = json.dumps(head, indent=1)[:-2]
        out.write(text + ',\n "rows": [\n  ' + ",\n  ".join(map(json.dumps, rows)) + '\n ],\n "summary": [\n  ' + ",\n  ".join(map(json.dumps, summary)) + "\n ]\n}\n")
    table = pathlib.Path(args.output).with_suffix(".md")
    write_table(table, head, rows, pathlib.Path(args.output).name)
    print(f"{args.output}, {table}: {len(rows)} rows")


if __name__ == "__main__": main()
