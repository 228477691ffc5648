#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""CG on the CPU against PETSc's KSPCG and against our own FP64, interleaved in one run.

usage: bench/cpu_cg.py [--halftone build/halftone] [--suite bench/suite.tsv] [--class cpu-large] [--only NAME,...] [--pairs 7]
                       [--peer petsc|none] [--policies fixed:f64,auto] [--precond none] [-o results.json]
Each pair runs every contestant once, one after the other; ratios are medians of the pairs' ratios. Time to solution is set-up plus
solve plus certificate on our side, solve plus certificate on PETSc's. Needs numpy and scipy; PETSc where --peer petsc.
"""
import argparse, csv, datetime, json, os, pathlib, shlex, shutil, statistics, subprocess, sys, tempfile
from means import geomean

HERE = pathlib.Path(__file__).resolve().parent
ENV = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def build_peer(folder):
    roots = sorted(pathlib.Path("/usr/lib/petscdir").glob("petsc3.*/*-real"))
    if not roots or not shutil.which("mpicc"): sys.exit("PETSc or MPI is not installed: apt-get install libpetsc-real-dev")
    exe = folder / "petsc_cg"
    subprocess.run(["mpicc", "-O2", HERE / "peers/petsc_cg.c", "-o", exe, f"-I{roots[-1]}/include", f"-L{roots[-1]}/lib", "-lpetsc_real", "-lm"], check=True)
    return exe


def to_petsc(npz, out):
    """PETSc's binary format: big-endian class id, sizes, row lengths, columns, values."""
    import numpy as np, scipy.sparse as sp
    a = sp.load_npz(npz).tocsr()
    with open(out, "wb") as f:
        np.array([1211216, a.shape[0], a.shape[1], a.nnz], ">i4").tofile(f)
        np.diff(a.indptr).astype(">i4").tofile(f)
        a.indices.astype(">i4").tofile(f)
        a.data.astype(">f8").tofile(f)


def run_petsc(exe, path, precond):
    r = subprocess.run(["mpirun", "-n", "2", "--bind-to", "core", exe, path, "-pc_type", precond], capture_output=True, text=True, env=dict(ENV, OMP_NUM_THREADS="1"), check=True)
    return json.loads(r.stdout.strip().splitlines()[-1])


def run_ours(exe, path, policy, precond):
    args = [exe, "solve", path, "--json", "--precond", precond, "--policy", policy, "--rtol", "1e-10"]
    if policy == "fixed:f64": args += ["--no-exactness-flags"]
    r = subprocess.run(args, capture_output=True, text=True)
    if r.returncode not in (0, 1): sys.exit(r.stderr)
    rep = json.loads(r.stdout)
    rep["time_s"] = rep["time_setup_s"] + rep["time_solve_s"]
    return rep


def median(v): return statistics.median(v)


def measure(row, args, peer, folder):
    path, binary = folder / f"{row['name']}.npz", folder / f"{row['name']}.petsc"
    subprocess.run([args.halftone, "gen", *shlex.split(row["recipe"]), "-o", path], check=True)
    if peer: to_petsc(path, binary)
    runs = {p: [] for p in (["petsc"] if peer else []) + args.policies}
    for _ in range(args.pairs):
        for name, got in runs.items():
            got.append(run_petsc(peer, binary, args.precond) if name == "petsc" else run_ours(args.halftone, path, name, args.precond))
    path.unlink(); binary.unlink(missing_ok=True)
    out = dict(name=row["name"], recipe=row["recipe"])
    for name, got in runs.items():
        last = got[-1]
        out[name] = dict(time_s=median([g["time_s"] for g in got]), time_min_s=min(g["time_s"] for g in got), time_max_s=max(g["time_s"] for g in got), iterations=last["iterations"], residual_true=last["residual_true"])
        if name != "petsc":
            out[name].update({k: last[k] for k in ("outcome", "policy_chosen", "bytes_per_nonzero", "n", "nnz", "replacements", "bytes_f64", "bytes_f32", "bytes_16", "bytes_vectors")})
            out[name].update(time_setup_s=median([g["time_setup_s"] for g in got]), time_solve_s=median([g["time_solve_s"] for g in got]))
        for base in runs:
            if base != name: out[name][f"speedup_{base}"] = median([b["time_s"] / g["time_s"] for b, g in zip(runs[base], got)])
    return out


def show(out, policies):
    for p in policies:
        o = out[p]
        ratios = "  ".join(f"{k[8:]} x{o[k]:.2f}" for k in o if k.startswith("speedup_"))
        print(f"{out['name']:24} {p:10} {o['iterations']:6} it  {o['time_s']:7.3f} s ({o['time_min_s']:.3f}-{o['time_max_s']:.3f}, set-up {o['time_setup_s']:.3f})  {o['bytes_per_nonzero']:5.2f} B/nnz  true {o['residual_true']:.1e}  {ratios}  {o['outcome']}", flush=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--halftone", default="build/halftone"); ap.add_argument("--suite", default=HERE / "suite.tsv"); ap.add_argument("--class", dest="cls", default="cpu-large")
    ap.add_argument("--only", default=""); ap.add_argument("--pairs", type=int, default=7); ap.add_argument("--peer", default="petsc"); ap.add_argument("--precond", default="none")
    ap.add_argument("--policies", default="fixed:f64,auto"); ap.add_argument("-o", dest="output")
    args = ap.parse_args(); args.policies = args.policies.split(",")
    rows = [r for r in csv.DictReader((l for l in open(args.suite) if not l.startswith("#")), delimiter="\t") if (r["name"] in args.only.split(",") if args.only else r["class"] == args.cls)]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder); table = []
        try: peer = build_peer(folder) if args.peer == "petsc" else None
        except SystemExit as e: sys.exit(f"{e}, or use --peer none")
        for row in rows:
            table.append(measure(row, args, peer, folder)); show(table[-1], args.policies)
    if not table: sys.exit("no row of the suite matches")
    summary = {p: {k: geomean([r[p][k] for r in table]) for k in table[0][p] if k.startswith("speedup_")} for p in args.policies}
    for p, s in summary.items(): print(p, "geometric mean:", "  ".join(f"{k[8:]} x{v:.2f}" for k, v in s.items()))
    if args.output:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=HERE).stdout.strip()
        cpu = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), "?")
        json.dump(dict(commit=commit, date=str(datetime.date.today()), cpu=cpu, cores=os.cpu_count(), precond=args.precond, pairs=args.pairs, rows=table, summary=summary), open(args.output, "w"), indent=1)


if __name__ == "__main__": main()
