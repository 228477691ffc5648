#!/usr/bin/env python3
"""Every generated family at two sizes, and every positive definite matrix of a folder, is solved, or the outcome is a true sentence.

usage: check_solutions.py [COMMAND [FOLDER]]   (build/halftone, $HALFTONE_MATRICES)
The residual is recomputed by SciPy from the matrix file, whatever the report says. Without SciPy: exit 77 (skipped). Matrices of the
folder above 30,000 rows are left out, to keep the test short.
SPDX-License-Identifier: BSD-3-Clause
"""
import csv
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import scipy.io
    import scipy.sparse
except ImportError:
    print("SciPy is not installed: skipped")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
RTOL = 1e-10
# Two sizes a family, the second odd; the others take --size.
SIZES = {"wathen": (("--nx", "6", "--ny", "5"), ("--nx", "21", "--ny", "17")), "hilbert": (("--size", "5"), ("--size", "9")),
         "spd": (("--size", "40"), ("--size", "97")), "kernel": (("--size", "40"), ("--size", "97")), "trefethen": (("--size", "200"), ("--size", "1999")),
         "graph": (("--size", "300"), ("--size", "4001")), "cvxbqp": (("--size", "300"), ("--size", "4001"))}
DEFAULT = {True: (("--size", "4"), ("--size", "9")), False: (("--size", "8"), ("--size", "33"))}
THREE_DIMENSIONAL = {"stencil3d", "laplace27", "laplace27e8", "elasticity3d", "fem3d", "radiation", "rhd", "oil", "weather"}
# What may end without a solution, and how: FP64 or the iteration limit is at its end there.
HONEST = {"attainable_accuracy", "iteration_limit", "stagnated", "not_symmetric"}


def run(*args):
    return subprocess.run([COMMAND, *map(str, args)], capture_output=True, text=True, timeout=300)


def read(path):
    if path.suffix == ".npz":
        return scipy.sparse.load_npz(path).tocsr()
    with gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb") as file:
        return scipy.sparse.csr_matrix(scipy.io.mmread(file))


def solve(path, folder):
    """A sentence of what is wrong, "" when solved, or the honest outcome in brackets."""
    x_path, b_path = folder / "x.npy", folder / "b.npy"
    a = read(path)
    np.save(b_path, a @ np.random.default_rng(1).standard_normal(a.shape[0]))
    x_path.unlink(missing_ok=True)
    r = run("solve", path, "-b", b_path, "-o", x_path, "--json")
    if r.returncode not in (0, 1):
        return f"status {r.returncode}: {r.stderr.strip()}"
    report = json.loads(r.stdout)
    if r.returncode == 1:
        return f"({report['outcome']})" if report["outcome"] in HONEST and report["detail"] else f"{report['outcome']}: {report['detail']}"
    b, x = np.load(b_path), np.load(x_path)
    residual = np.linalg.norm(b - a @ x) / np.linalg.norm(b)
    rounding = 8 * np.finfo(float).eps * (abs(a) @ abs(x)).max() / np.linalg.norm(b) * np.sqrt(a.shape[0])
    return "" if residual <= RTOL + rounding else f"says solved, and SciPy finds {residual:.2e} ||b||"


def generated(folder):
    kinds = re.findall(r"^  (\w+)  ", run("gen", "--list").stdout, re.M)
    for kind in kinds:
        for size in SIZES.get(kind, DEFAULT[kind in THREE_DIMENSIONAL]):
            path = folder / "generated.npz"
            r = run("gen", kind, *size, "-o", path)
            yield f"{kind} {' '.join(size)}", path if r.returncode == 0 else r.stderr.strip()


def real(root):
    for row in csv.DictReader(open(root / "MANIFEST.tsv"), delimiter="\t"):
        small = row["rows"].isdigit() and int(row["rows"]) <= 30000
        if row["SPD"].lower().startswith("yes") and small and not row["file"].startswith("nasty"):
            yield row["name"], root / row["file"]


def main():
    root = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else pathlib.Path(os.environ.get("HALFTONE_MATRICES", ""))
    wrong = honest = total = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        cases = [generated(folder)]
        if (root / "MANIFEST.tsv").is_file():
            cases.append(real(root))
        else:
            print("no folder of real matrices: only the generated ones are tried")
        for name, path in (case for source in cases for case in source):
            total += 1
            said = solve(path, folder) if isinstance(path, pathlib.Path) else path
            if said.startswith("("):
                honest += 1
                print(f"{name}: not solved, and says so {said}")
            elif said:
                wrong += 1
                print(f"WRONG: {name}: {said}")
    print(f"{total - wrong - honest} of {total} solved, {honest} honestly not")
    print(f"{total - wrong} passed, {wrong} failed")
    return 1 if wrong or not total else 0


COMMAND = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build" / "halftone")
if __name__ == "__main__":
    sys.exit(main())
