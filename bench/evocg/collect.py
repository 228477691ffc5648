#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Take what gpu_batch.sh brought back into OUT/measured-cuda.json and OUT/policies, so that the experiments can tabulate it.

usage: bench/evocg/collect.py FOLDER [--out evocg-out] [--card "H200"]; then e.g. bench/evocg/precision.py --backend cuda --measured --set gpu
"""
import shutil
from common import *

LABELS = {"fixed:f64": "f64", "fixed:f32": "f32", "fixed:bf16": "16", "rule": "rule", "budget": "budget", "auto": "auto", "learned:policies/{matrix}.safetensors": "learned",
          "learned:settled/{matrix}.safetensors": "settled", "learned:constant64.safetensors": "constant", "learned:constant8.safetensors": "constant8"}


def main():
    p = parser(__doc__)
    p.add_argument("folder")
    args = parse(p)
    args.backend, folder, rows = "cuda", pathlib.Path(args.folder), []
    labels = dict(LABELS, **{f"learned:{args.transfer}.safetensors": "transfer"})
    known = {r["name"]: r for r in listed(args.table)}
    for setting in SETTINGS:
        path = folder / f"{setting}.json"
        if not path.exists(): continue
        head = json.loads(path.read_text())
        for row in read_gpu(path, setting, labels):
            given = next(r["recipe"] for r in head["rows"] if r["matrix"] == row["matrix"])
            row["kind"] = "real" if given.endswith((".mtx", ".mtx.gz")) else known.get(row["matrix"], dict(kind="own"))["kind"]
            rows.append(row)
        print(f"{setting}: {sum(r['setting'] == setting for r in rows)} rows")
    store(args).write_text(json.dumps(dict(about(args), cpu=head["card"], commit=head["commit"], date=head["date"], rows=rows), indent=1))
    for file in sorted((folder / "policies").glob("*")) if (folder / "policies").exists() else []: shutil.copy(file, args.policies / file.name)


if __name__ == "__main__": main()
