"""Every instruction set that this processor has solves the same systems in nearly as many iterations. They round differently:
the portable kernels multiply and add, the others fuse the two. SPDX-License-Identifier: BSD-3-Clause"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HALFTONE = os.environ["HALFTONE"]
MATRICES = [
    ["stencil3d", "--points", "27", "--size", "13", "--coefficients", "lognormal", "--seed", "3"],
    ["elasticity3d", "--size", "5"],
]
POLICIES = ["fixed:f64", "fixed:f32", "fixed:bf16", "budget"]


def run(*args):
    return subprocess.run([HALFTONE, *map(str, args)], capture_output=True, text=True, timeout=300)


def main():
    flags = set()
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            flags = set(line.split())
    sets = ["portable"]
    if {"avx2", "fma", "f16c"} <= flags:
        sets.append("avx2")
    if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= flags:
        sets.append("avx512")
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, recipe in enumerate(MATRICES):
            matrix = f"{folder}/{number}.mtx"
            made = run("gen", *recipe, "-o", matrix)
            if made.returncode != 0:
                print(f"{' '.join(recipe)}: status {made.returncode}: {made.stderr.strip()}")
                return 1
            for policy in POLICIES:
                answers = {}
                for isa in sets:
                    solved = run("solve", matrix, "--format", "split", "--policy", policy, "--isa", isa, "--json")
                    if solved.returncode != 0:
                        print(f"{recipe[0]}, {policy}, {isa}: status {solved.returncode}: {solved.stderr.strip()} {solved.stdout.strip()}")
                        wrong += 1
                        continue
                    report = json.loads(solved.stdout)
                    if report["isa"] != isa:
                        print(f"{recipe[0]}, {policy}: asked for {isa}, the report says {report['isa']}")
                        wrong += 1
                    if not (report["residual_true"] <= report["tolerance"] and report["error_known"] <= 1e-6):
                        print(f"{recipe[0]}, {policy}, {isa}: residual {report['residual_true']}, error {report['error_known']}")
                        wrong += 1
                    answers[isa] = report["iterations"]
                if answers and max(answers.values()) > 1.1 * min(answers.values()) + 2:
                    print(f"{recipe[0]}, {policy}: iterations {answers}")
                    wrong += 1
    print(f"isa: {', '.join(sets)}: {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
