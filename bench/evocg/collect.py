#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Take what gpu_batch.sh brought back into OUT/measured-cuda.json and OUT/policies, so that the experiments can tabulate it.

usage: bench/evocg/collect.py FOLDER ... [--out evocg-out]; then e.g. bench/evocg/precision.py --backend cuda --measured --set gpu
Of several folders a later one's measurement takes the place of an earlier one's, and of a matrix's policies the longest training's counts.
"""
import shutil
from common import *

LABELS = {"fixed:f64": "f64", "fixed:f32": "f32", "fixed:bf16": "16", "rule": "rule", "budget": "budget", "auto": "auto", "learned:policies/{matrix}.safetensors": "learned",
          "learned:settled/{matrix}.safetensors": "settled", "learned:constant1024.safetensors": "constant", "learned:constant64.safetensors": "constant64", "learned:constant8.safetensors": "constant8",
          "learned:constant4096.safetensors": "constant4096", "learned:time/{matrix}.safetensors": "time", "learned": "library", **{p: p for p in PROGRAMS}}
MORE = {"cg": ["transfer", "large-transfer", "constants"], "guarded": ["settled-guarded", "transfer-guarded", "large-transfer-guarded"]}  # comparisons of their own under the same rules, with FP64 of their own
PEERS = ("us_per_iteration_cusparse", "us_per_iteration_graph", "us_product_cusparse", "time_cusparse_s", "time_graph_s", "iterations_cusparse")


def rows_of(folder, setting, labels, kinds):
    """Rows of a setting; its head. The first file that has a contestant counts."""
    rows, head = {}, None
    for name in (setting, f"large-{setting}", *MORE.get(setting, [])):
        path = folder / f"{name}.json"
        if not path.exists(): continue
        head = json.loads(path.read_text())
        recipes = {r["matrix"]: r["recipe"] for r in head["rows"]}
        for row in read_gpu(path, setting, labels):
            row["kind"] = "real" if recipes[row["matrix"]].endswith((".mtx", ".mtx.gz")) else kinds.get(row["matrix"], "own")
            rows.setdefault(key(row), row)
    return list(rows.values()), head


def lend_peers(rows):
    """The library's times to what has the same matrix and preconditioner: it does not ask for our engine or guard, and runs once."""
    of = lambda r: (r["matrix"], SETTINGS[r["setting"]]["precond"])
    theirs = {of(r): r for r in rows if r.get("time_cusparse_s")}
    for r in rows:
        if not r.get("time_cusparse_s") and of(r) in theirs: r.update({k: theirs[of(r)].get(k) for k in PEERS})


def told_in(file):
    try: return [json.loads(file.read_text())]
    except (OSError, ValueError): return []  # none, or it ended before it told anything


def episodes(file): return int(read_policy(file)[1].get("episodes", 0)) if file.exists() else -1


def take_policies(folder, args):
    """Policies, and what training told; of one that was cut off, in two parts: until then, and its judgement. That of what is carried over ran alone."""
    beside = folder.parent / "side_by_side"
    jobs = int(beside.read_text()) if beside.exists() else 1
    for name in {file.name.split(".")[0] for ending in ("safetensors", "json") for file in folder.glob(f"*.{ending}")}:
        file, mine = folder / f"{name}.safetensors", args.policies / f"{name}.safetensors"
        if episodes(file) < episodes(mine): continue
        if file.exists(): shutil.copy(file, mine)
        cut = told_in(folder / f"{name}.cut.json")
        parts = cut + told_in(folder / f"{name}.json")
        if not parts: continue
        whole = dict(cut_off=bool(cut), side_by_side=1 if name.startswith(args.transfer) else jobs) | parts[-1]  # its own word where it was collected before
        (args.policies / f"{name}.json").write_text(json.dumps(dict(whole, time_s=sum(t["time_s"] for t in parts)), indent=1))


def main():
    p = parser(__doc__)
    p.add_argument("folders", nargs="+", type=pathlib.Path)
    args = parse(p)
    args.backend, rows, heads, settled = "cuda", {}, [], {}
    labels = dict(LABELS, **{f"learned:{args.transfer}.safetensors": "transfer", f"learned:{args.transfer}-64.safetensors": "transfer64"})
    kinds = {r["name"]: r["kind"] for r in listed(args.table)}
    for folder in args.folders:
        mine = []
        for setting in SETTINGS:
            more, head = rows_of(folder, setting, labels, kinds)
            mine += more
            if head and head not in heads: heads.append(head)
            if more: print(f"{folder}, {setting}: {len(more)} rows")
        lend_peers(mine)  # those of the same batch, where there are some
        rows.update((key(r), r) for r in mine)
        chosen = folder / "settled.txt"
        if chosen.exists() and (folder / "settled-guarded.json").exists(): settled.update((name, labels[who]) for name, who in map(str.split, chosen.read_text().splitlines()))
        if (folder / "policies").exists(): take_policies(folder / "policies", args)
    lend_peers(rows.values())
    commits = ", then ".join(dict.fromkeys(h["commit"] for h in heads))
    store(args).write_text(json.dumps(dict(about(args), cpu=heads[-1]["card"], commit=commits, date=heads[-1]["date"], settled=settled, rows=list(rows.values())), indent=1))


if __name__ == "__main__": main()
