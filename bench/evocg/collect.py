#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Take what gpu_batch.sh brought back into OUT/measured-cuda.json and OUT/policies, so that the experiments can tabulate it.

usage: bench/evocg/collect.py FOLDER [--out evocg-out] [--card "H200"]; then e.g. bench/evocg/precision.py --backend cuda --measured --set gpu
"""
import shutil
from common import *

LABELS = {"fixed:f64": "f64", "fixed:f32": "f32", "fixed:bf16": "16", "rule": "rule", "budget": "budget", "auto": "auto", "learned:policies/{matrix}.safetensors": "learned",
          "learned:settled/{matrix}.safetensors": "settled", "learned:constant1024.safetensors": "constant", "learned:constant64.safetensors": "constant64", "learned:constant8.safetensors": "constant8",
          "learned:constant4096.safetensors": "constant4096", "learned:time/{matrix}.safetensors": "time"}


def main():
    p = parser(__doc__)
    p.add_argument("folder")
    args = parse(p)
    args.backend, folder, rows = "cuda", pathlib.Path(args.folder), []
    labels = dict(LABELS, **{f"learned:{args.transfer}.safetensors": "transfer"})
    by_name = {r["name"]: r for r in listed(args.table)}
    for setting in SETTINGS:
        for path in (folder / f"{setting}.json", folder / f"large-{setting}.json"):
            if not path.exists(): continue
            head = json.loads(path.read_text())
            for row in read_gpu(path, setting, labels):
                given = next(r["recipe"] for r in head["rows"] if r["matrix"] == row["matrix"])
                row["kind"] = "real" if given.endswith((".mtx", ".mtx.gz")) else by_name.get(row["matrix"], dict(kind="own"))["kind"]
                rows.append(row)
        print(f"{setting}: {sum(r['setting'] == setting for r in rows)} rows")
    settled = folder / "settled.txt"
    chosen = dict(l.split() for l in settled.read_text().splitlines()) if settled.exists() else {}
    store(args).write_text(json.dumps(dict(about(args), cpu=head["card"], commit=head["commit"], date=head["date"], settled={k: labels[v] for k, v in chosen.items()}, rows=rows), indent=1))
    for file in sorted((folder / "policies").glob("*")) if (folder / "policies").exists() else []: shutil.copy(file, args.policies / file.name)


if __name__ == "__main__": main()
