#!/usr/bin/env python3
"""Solve every matrix file of the folders on the GPU and on the CPU, by `halftone solve --json`, and compare how it ended.

usage: real_matrices.py HALFTONE FOLDER... [--time-limit SECONDS] [--jobs N]

N pairs are solved side by side, the CPU's half by one thread each: a process spends longer on the driver than on such a matrix. Times
are then those of solves that share the GPU.

Fails on a wrong claim (converged, with a true residual above the tolerance), on a command that crashes or hangs, and on output that is
no report. That one side solves what the other does not is counted and shown: near the limits of FP64 the last bits decide.
SPDX-License-Identifier: BSD-3-Clause"""
import argparse
import collections
import concurrent.futures
import json
import os
import subprocess
import sys

RTOL = 1e-10
POLICIES = ("fixed:f64", "auto")
BACKENDS = ("cpu", "cuda")
SOLVED = "converged"
REFUSED = "refused"  # a sentence and an exit status that says so: not a matrix, not symmetric as a file, too large


def files_of(folders):
    found = []
    for folder in folders:
        for place, _, names in sorted(os.walk(folder)):
            found += [os.path.join(place, n) for n in sorted(names) if n.endswith((".mtx", ".mtx.gz", ".npz"))]
    return found


def solve(command, path, backend, policy, limit):
    """(outcome, iterations, true residual, seconds, what is wrong or "")"""
    asked = [command, "solve", path, "--backend", backend, "--policy", policy, "--rtol", str(RTOL), "--time-limit", str(limit), "--json"]
    if backend == "cpu":
        asked += ["--threads", "1"]
    try:
        ended = subprocess.run(asked, capture_output=True, text=True, timeout=10 * limit + 300)
    except subprocess.TimeoutExpired:
        return "hung", -1, None, None, "did not end"
    if ended.returncode < 0:
        return "crashed", -1, None, None, f"ended by signal {-ended.returncode}"
    if not ended.stdout.strip():
        sentence = ended.stderr.strip().splitlines()
        return REFUSED, -1, None, None, "" if sentence else f"exit status {ended.returncode} without a word"
    try:
        report = json.loads(ended.stdout)
    except ValueError:
        return "no report", -1, None, None, "what it wrote is not JSON"
    report = report.get("report", report)
    outcome, residual = report.get("outcome"), report.get("residual_true")
    wrong = ""
    if outcome == SOLVED and not (residual is not None and residual <= report["tolerance"] * (1 + 1e-12)):
        wrong = f"claims to have converged, with a true residual of {residual}"
    if report.get("backend") not in (backend, "", None):
        wrong = f"ran on {report.get('backend')}"
    return outcome, report.get("iterations", -1), residual, report.get("time_solve_s"), wrong


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("halftone")
    arguments.add_argument("folders", nargs="+")
    arguments.add_argument("--time-limit", type=float, default=20)
    arguments.add_argument("--jobs", type=int, default=1)
    a = arguments.parse_args()
    files = files_of(a.folders)
    if not files:
        sys.exit("real_matrices: no .mtx, .mtx.gz or .npz file in " + ", ".join(a.folders))
    counts, wrongs = collections.Counter(), []
    print(f"{'matrix':32} {'policy':10} {'cpu':20} {'iterations':>10} {'s':>8} {'cuda':20} {'iterations':>10} {'s':>8}")
    pairs = [(path, policy) for path in files for policy in POLICIES]

    def both(pair):
        return [solve(a.halftone, pair[0], backend, pair[1], a.time_limit) for backend in BACKENDS]

    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        for (path, policy), ends in zip(pairs, pool.map(both, pairs)):
            wrongs += [f"{path}, {policy}, {backend}: {end[-1]}" for backend, end in zip(BACKENDS, ends) if end[-1]]
            (cpu, cpu_iterations, _, cpu_s, _), (cuda, cuda_iterations, _, cuda_s, _) = ends
            counts["pairs"] += 1
            counts["solved on both"] += cpu == cuda == SOLVED
            counts["worse on cuda"] += cpu == SOLVED and cuda != SOLVED
            counts["better on cuda"] += cuda == SOLVED and cpu != SOLVED
            counts["outcomes that differ"] += cpu != cuda
            counts["iterations 10 % more on cuda"] += cpu == cuda == SOLVED and cuda_iterations > 1.1 * cpu_iterations + 5
            mark = "  <--" if cpu != cuda else ""
            name = os.path.basename(path)[:32]
            print(f"{name:32} {policy:10} {cpu or '':20} {cpu_iterations:10} {cpu_s or 0:8.3f} {cuda or '':20} {cuda_iterations:10} {cuda_s or 0:8.3f}{mark}",
                  flush=True)
    print()
    for name in ("pairs", "solved on both", "worse on cuda", "better on cuda", "outcomes that differ", "iterations 10 % more on cuda"):
        print(f"{name:32} {counts[name]}")
    if not counts["solved on both"]:
        wrongs.append("nothing was solved on both: `halftone info` says whether there is a GPU")
    for wrong in wrongs:
        print("WRONG: " + wrong)
    sys.exit(1 if wrongs else 0)


if __name__ == "__main__":
    main()
