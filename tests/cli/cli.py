"""What the tests of the command have in common: it is run from outside, and every file has its folder and a small matrix. Standard library only.
SPDX-License-Identifier: BSD-3-Clause"""
import json
import math
import os
import pathlib
import subprocess
import tempfile
import unittest

HALFTONE = os.environ["HALFTONE"]
SOURCE = pathlib.Path(os.environ["HALFTONE_SOURCE"])
REQUIRED = ["outcome", "iterations", "residual_true", "residual_recursive", "time_setup_s", "time_solve_s", "bytes_matrix",
            "policy", "backend", "n", "nnz"]
COMMANDS = ["solve", "info", "gen", "convert", "bench", "report", "help", "version"]


def run(*args, **more):
    """status, standard output, standard error"""
    done = subprocess.run([HALFTONE, *map(str, args)], capture_output=True, text=True, timeout=120, **more)
    return done.returncode, done.stdout, done.stderr


def read_matrix(path):
    lines = [l for l in pathlib.Path(path).read_text().splitlines() if l.strip()]
    symmetric = "symmetric" in lines[0].split()
    body = [l for l in lines if not l.startswith("%")]
    n = int(body[0].split()[0])
    entries = []
    for l in body[1:]:
        i, j, v = l.split()
        entries.append((int(i) - 1, int(j) - 1, float(v)))
        if symmetric and i != j:
            entries.append((int(j) - 1, int(i) - 1, float(v)))
    return n, entries


def read_vector(path_or_text):
    text = path_or_text if "\n" in str(path_or_text) else pathlib.Path(path_or_text).read_text()
    body = [l for l in text.splitlines() if l.strip() and not l.startswith("%")]
    rows, columns = map(int, body[0].split())
    values = [float(l) for l in body[1:]]
    assert len(values) == rows * columns
    return [values[k * rows:(k + 1) * rows] for k in range(columns)]


def write_vector(path, columns):
    values = "\n".join(repr(v) for c in columns for v in c)
    pathlib.Path(path).write_text(f"%%MatrixMarket matrix array real general\n{len(columns[0])} {len(columns)}\n{values}\n")


def multiply(matrix, x):
    n, entries = matrix
    y = [0.0] * n
    for i, j, v in entries:
        y[i] += v * x[j]
    return y


def norm(v):
    return math.sqrt(math.fsum(a * a for a in v))


def relative_residual(matrix, x, b):
    return norm([p - q for p, q in zip(b, multiply(matrix, x))]) / norm(b)


class Cli(unittest.TestCase):
    HEAD = "%%MatrixMarket matrix coordinate real symmetric\n"
    GENERAL = "%%MatrixMarket matrix coordinate real general\n"

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.dir = pathlib.Path(cls.folder.name)
        cls.a = cls.dir / "a.mtx"
        status, out, err = run("gen", "stencil2d", "--size", "12", "--coefficients", "lognormal", "--seed", "3", "-o", cls.a)
        assert status == 0, err
        cls.matrix = read_matrix(cls.a)
        cls.n = cls.matrix[0]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def path(self, name):
        p = self.dir / name
        if p.exists():
            p.unlink()
        return p

    def made(self, name, text):
        p = self.path(name)
        p.write_text(text)
        return p

    def fails(self, words, *args, status=2, **more):
        """One sentence on standard error, with these words; nothing on standard output."""
        got, out, err = run(*args, **more)
        self.assertEqual(got, status, (args, out, err))
        self.assertTrue(err.startswith("halftone: ") and len(err.splitlines()) == 1, err)
        for word in [words] if isinstance(words, str) else words:
            self.assertIn(word, err)
        self.assertEqual(out, "")

    def solves(self, *args, status=0, **more):
        got, out, err = run("solve", *args, "--json", **more)
        self.assertEqual(got, status, (args, out, err))
        return json.loads(out)
