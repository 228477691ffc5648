#!/usr/bin/env python3
"""Reading Matrix Market: halftone against fast_matrix_market (PyPI), interleaved in one run.

usage: read_mtx.py DRIVER [OUT.json] [--repeat 7] [--size 50] [--files A.mtx ...]
DRIVER is build/bench/bench_read_mtx. Without --files it writes three files (27 points, lognormal, about 100 MB in general form): one
triangle sorted by column, all entries sorted by row, and all entries in random order. `read` is mmread into a COO, `csr` is that and
tocsr with sorted rows, the state that halftone returns (it has measured the symmetry, too). Each read is a fresh process; times are
taken inside it, processor time too since the machine may be shared, and peak memory is what reading added.
Needs python3 with scipy and fast_matrix_market.  SPDX-License-Identifier: BSD-3-Clause
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile

PEER = """
import json, sys, time
import fast_matrix_market as fmm, scipy.sparse
fmm.PARALLELISM = int(sys.argv[2])
memory = lambda key: 1024 * next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith(key))
before, start, cpu = memory("VmRSS"), time.perf_counter(), time.process_time()
a = fmm.mmread(sys.argv[1]); read, cpu_read = time.perf_counter() - start, time.process_time() - cpu
a = a.tocsr(); a.sort_indices(); csr, cpu_csr = time.perf_counter() - start, time.process_time() - cpu
print(json.dumps({"read": read, "csr": csr, "cpu_read": cpu_read, "cpu_csr": cpu_csr, "nnz": int(a.nnz), "n": a.shape[0],
                  "peak_bytes": memory("VmHWM") - before}))
"""


def make_files(folder, m):
    import fast_matrix_market as fmm
    import numpy as np
    import scipy.sparse as sp
    rng = np.random.default_rng(1)
    index, n, rows, columns, values = np.arange(m**3).reshape(m, m, m), m**3, [], [], []
    for offset in ((z, y, x) for z in (-1, 0, 1) for y in (-1, 0, 1) for x in (-1, 0, 1)):
        if offset <= (0, 0, 0):
            continue
        here = index[tuple(slice(max(0, -d), m - max(0, d)) for d in offset)].ravel()
        rows.append(here)
        columns.append(here + offset[0] * m * m + offset[1] * m + offset[2])
        values.append(-np.exp(rng.standard_normal(len(here))))
    half = sp.coo_matrix((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(n, n))
    a = (half + half.T).tocsr()
    a = (a + sp.diags(0.1 - np.asarray(a.sum(axis=1)).ravel())).tocsr()
    lower, full = sp.tril(a).tocsc().tocoo(), a.tocoo()
    order = rng.permutation(full.nnz)
    shuffled = sp.coo_matrix((full.data[order], (full.row[order], full.col[order])), shape=(n, n))
    paths = []
    for name, matrix in (("one_triangle", lower), ("general_sorted", full), ("general_shuffled", shuffled)):
        path = folder / f"{name}.mtx"
        fmm.mmwrite(path, matrix, symmetry="general")
        if name == "one_triangle":
            text = path.read_bytes()
            path.write_bytes(text.replace(b"general", b"symmetric", 1))
        paths.append(path)
    return paths


def run(command):
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=dict(os.environ, OMP_WAIT_POLICY="passive"))
    if result.returncode:
        sys.exit(f"{command[0]}: {result.stderr}")
    return json.loads(result.stdout)


def measure(driver, path, threads, repeat):
    ours, read, csr, cpu, cpu_read, cpu_csr = [], [], [], [], [], []
    for _ in range(repeat):
        mine = run([driver, path, threads, 1])
        peer = run([sys.executable, "-c", PEER, path, threads])
        assert mine["nnz"] == peer["nnz"], path
        ours.append(mine["seconds"][0])
        read.append(peer["read"])
        csr.append(peer["csr"])
        cpu.append(mine["cpu_seconds"])
        cpu_read.append(peer["cpu_read"])
        cpu_csr.append(peer["cpu_csr"])
    bytes_csr = 12 * mine["nnz"] + 8 * mine["n"]
    spread = lambda t: {"best": min(t), "median": statistics.median(t), "worst": max(t)}
    ratio = lambda mine, peer: statistics.median(p / o for o, p in zip(mine, peer))
    return {"file": path.name, "bytes": path.stat().st_size, "n": mine["n"], "nnz": mine["nnz"], "threads": threads, "halftone": spread(ours),
            "peer_read": spread(read), "peer_csr": spread(csr), "cpu_seconds": spread(cpu),
            "speed_over_peer_read": ratio(ours, read), "speed_over_peer_csr": ratio(ours, csr), "cpu_over_peer_read": ratio(cpu, cpu_read),
            "cpu_over_peer_csr": ratio(cpu, cpu_csr),
            "megabytes_per_second": path.stat().st_size / 1e6 / min(ours), "peak_over_csr": mine["peak_bytes"] / bytes_csr,
            "peer_peak_over_csr": peer["peak_bytes"] / bytes_csr}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("driver", type=pathlib.Path)
    parser.add_argument("out", nargs="?", type=pathlib.Path)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--size", type=int, default=50)
    parser.add_argument("--threads", type=int, nargs="*", default=[1, len(os.sched_getaffinity(0))])
    parser.add_argument("--files", type=pathlib.Path, nargs="*")
    args = parser.parse_args()
    import fast_matrix_market as fmm
    with tempfile.TemporaryDirectory() as folder:
        paths = args.files or make_files(pathlib.Path(folder), args.size)
        rows = [measure(args.driver, path, threads, args.repeat) for path in paths for threads in args.threads]
    print(f"{'file':20} {'MB':>5} {'thr':>3} {'ours s':>7} {'peer read':>9} {'peer csr':>8} {'/read':>6} {'/csr':>6} {'cpu/rd':>6} {'cpu/csr':>7} {'MB/s':>6} {'mem/csr':>7} {'peer':>6}")
    for r in rows:
        print(f"{r['file']:20} {r['bytes'] / 1e6:5.0f} {r['threads']:3} {r['halftone']['median']:7.3f} {r['peer_read']['median']:9.3f} "
              f"{r['peer_csr']['median']:8.3f} {r['speed_over_peer_read']:6.2f} {r['speed_over_peer_csr']:6.2f} {r['cpu_over_peer_read']:6.2f} {r['cpu_over_peer_csr']:7.2f} {r['megabytes_per_second']:6.0f} "
              f"{r['peak_over_csr']:7.2f} {r['peer_peak_over_csr']:6.2f}")
    if args.out:
        cpu = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), platform.processor())
        args.out.write_text(json.dumps({"what": "Matrix Market reading", "date": datetime.date.today().isoformat(), "cpu": cpu,
                                        "cores": len(os.sched_getaffinity(0)), "peer": f"fast_matrix_market {fmm.__version__}",
                                        "load_average": os.getloadavg()[0], "rows": rows}, indent=1) + "\n")


main()
