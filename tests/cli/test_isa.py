"""Every instruction set that this processor has gives the same iterates, to the last bit. SPDX-License-Identifier: BSD-3-Clause"""
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
                    x = f"{folder}/x-{isa}.npy"
                    solved = run("solve", matrix, "--format", "split", "--policy", policy, "--isa", isa, "--json", "-o", x)
                    if solved.returncode != 0:
                        print(f"{recipe[0]}, {policy}, {isa}: status {solved.returncode}: {solved.stderr.strip()} {solved.stdout.strip()}")
                        wrong += 1
                        continue
                    report = json.loads(solved.stdout)
                    if report["isa"] != isa:
                        print(f"{recipe[0]}, {policy}: asked for {isa}, the report says {report['isa']}")
                        wrong += 1
                    answers[isa] = (report["iterations"], pathlib.Path(x).read_bytes())
                if len(set(answers.values())) > 1:
                    print(f"{recipe[0]}, {policy}: the answers differ: iterations {({k: v[0] for k, v in answers.items()})}")
                    wrong += 1
    print(f"isa: {', '.join(sets)}: {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
