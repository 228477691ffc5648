"""The experiments of bench/evocg on matrices so small that each takes a moment: they run to their tables, the emulation follows the command, and
formats round as they should. SPDX-License-Identifier: BSD-3-Clause"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
    import scipy.sparse as sp
except ImportError:
    print("numpy and scipy are not here")
    sys.exit(77)

SOURCE, HALFTONE = pathlib.Path(os.environ["HALFTONE_SOURCE"]), os.environ["HALFTONE"]
EVOCG = SOURCE / "bench/evocg"
sys.path.insert(0, str(EVOCG))
sys.dont_write_bytecode = True
import common, emulate

TABLE = "name\tfor\tkind\tsets\trecipe\tnote\n" "small\t-\town\tcpu\tstencil2d --size 24 --coefficients lognormal\t\n" "diagonal\tbcsstm39\tstand-in\tcpu\tdiagonal 300 1 1e4\t\n" "mesh\t-\town\t-\tfem2d --size 10\t\n"


class Formats(unittest.TestCase):
    def test_bf16_is_the_upper_half_of_fp32(self):
        v = np.random.default_rng(1).standard_normal(1000).astype(np.float32)
        bits = v.view(np.uint32).astype(np.uint64)
        rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)
        self.assertTrue(np.array_equal(emulate.quantise(v.astype(float), "bf16"), rounded.astype(float)))

    def test_fp32(self):
        v = np.random.default_rng(2).standard_normal(1000)
        self.assertTrue(np.array_equal(emulate.quantise(v, "fp32"), v.astype(np.float32).astype(float)))

    def test_fp8_numbers(self):
        """Every number of the formats is kept, and what lies between goes to a neighbour."""
        for name, bits, bias, exponents in (("e4m3", 3, 7, 16), ("e5m2", 2, 15, 31)):
            numbers = sorted({(m / 2 ** bits + (e > 0)) * 2.0 ** (max(e, 1) - bias) for e in range(exponents) for m in range(2 ** bits)})
            numbers = np.array([v for v in numbers if v <= emulate.FORMATS[name][2]])
            self.assertTrue(np.array_equal(emulate.quantise(numbers, name), numbers))
            middle = (numbers[1:] + numbers[:-1]) / 2
            got = emulate.quantise(middle, name)
            self.assertTrue(np.all((got == numbers[1:]) | (got == numbers[:-1])))
            self.assertEqual(emulate.quantise(np.array([1e9]), name)[0], numbers[-1])


class Experiments(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.out = pathlib.Path(cls.folder.name)
        (cls.out / "table.tsv").write_text(TABLE)
        cls.options = ["--halftone", HALFTONE, "--out", str(cls.out / "out"), "--table", str(cls.out / "table.tsv"), "--transfer", "mesh", "--pairs", "2", "--threads", "1", "--episodes", "8",
                       "--train", "--reward paper --update 128 --minibatch 32 --tiles 4", "--matrices", ""]

    @classmethod
    def tearDownClass(cls): cls.folder.cleanup()

    def run_one(self, name, *more):
        r = subprocess.run([sys.executable, "-B", EVOCG / f"{name}.py", *self.options, *more], capture_output=True, text=True, timeout=300)
        self.assertEqual(r.returncode, 0, r.stderr)
        text = (self.out / f"out/{name}.md").read_text()
        self.assertIn("paper", text)
        return text, json.loads((self.out / f"out/{name}.json").read_text())

    def test_all_run_to_their_tables(self):
        for name in ("training", "precision", "rule", "transfer", "jacobi", "cost", "saving", "reuse", "fp8"):
            with self.subTest(name):
                text, data = self.run_one(name)
                self.assertIn("small" if name != "training" else "mesh", text)
        text, data = self.run_one("trajectories", "--only", "small")
        self.assertIn("</html>", (self.out / "out/trajectory-small.html").read_text()[-200:])
        self.assertIn("small:FP64", data["runs"])
        again = (self.out / "out/measured-cpu.json").read_text()
        self.run_one("precision", "--measured")
        self.assertEqual((self.out / "out/measured-cpu.json").read_text(), again)

    def test_real_files_take_the_place_of_stand_ins(self):
        folder = self.out / "real/deep"
        folder.mkdir(parents=True)
        sp.save_npz(folder / "bcsstm39.npz", sp.diags(np.arange(1.0, 101.0), format="csr"))
        args = common.parse(common.parser(""), [*self.options[:-1], str(self.out / "real")])
        by = {c["name"]: c for c in common.cases(args)}
        self.assertEqual((by["diagonal"]["kind"], by["small"]["kind"]), ("real", "own"))
        self.assertEqual(common.load(common.matrix(args, by["diagonal"])).shape[0], 100)

    def test_a_cards_measurements_are_tabulated_elsewhere(self):
        """collect.py and the tables read what bench_gpu_cg writes: fields of bench/gpu/results.def."""
        fields = re.findall(r"^FIELD_\w+\((\w+),", (SOURCE / "bench/gpu/results.def").read_text(), re.M)
        policies = {"fixed:f64": (100, 1e-10, 40.0), "learned:policies/{matrix}.safetensors": (104, 2e-10, 35.0), "rule": (100, 1e-10, 44.0), "learned:constant1024.safetensors": (100, 1e-10, 42.0)}
        rows = []
        for policy, (iterations, residual, us) in policies.items():
            row = dict.fromkeys(fields)
            row.update(matrix="small", recipe="stencil2d", policy=policy, outcome="recursive_only" if residual > 1e-10 else "converged", iterations=iterations, products=iterations + 1, replacements=0, n=576, nnz=2784,
                       pairs=3, residual_true=residual, error_known=10 * residual, us_per_iteration=us, time_min_s=1e-3, time_max_s=2e-3, time_certificate_s=1e-5, speedup_f64_min=1, speedup_f64_max=1, bytes_matrix=60000, format="tilecsc", error="",
                       bytes_f64=2784 * 20.0 * iterations, bytes_f32=0, bytes_16=0, time_cusparse_s=8e-3, time_graph_s=2e-3, us_per_iteration_cusparse=80.0, us_product_cusparse=20.0)
            rows.append(row)
        folder, out = self.out / "card", self.out / "of-card"
        folder.mkdir()
        (folder / "cg.json").write_text(json.dumps(dict(card="a card", commit="c", date="d", rows=rows)))
        options = ["--out", out, "--table", self.out / "table.tsv", "--matrices", ""]
        subprocess.run([sys.executable, "-B", EVOCG / "collect.py", folder, *options], check=True, capture_output=True, timeout=60)
        texts = {}
        for name in ("precision", "endtoend", "cost"):
            subprocess.run([sys.executable, "-B", EVOCG / f"{name}.py", "--backend", "cuda", "--measured", *options], check=True, capture_output=True, timeout=60)
            texts[name] = (out / f"{name}-cuda.md").read_text()
        self.assertIn("a card", texts["precision"])
        self.assertIn("| speed against own FP64 | 1.28 | 1.10 |", texts["precision"])  # 100 x 40 us by 104 x 35 us
        self.assertIn("| iterations | +11.4 % | +4.0 % |", texts["precision"])
        self.assertIn("| true residual above it | not told | 1 of 1 small |", texts["precision"])
        self.assertIn("| product's share of FP64 CG, mean | 67.1 % | 25.0 % (cuSPARSE, sample form) |", texts["endtoend"])
        self.assertIn("| paper's engine, FP64 against cuSPARSE | - | 2.00 (2.00 to 2.00, 1 matrices) |", texts["endtoend"])
        self.assertIn("| policy, mean | 1.09 % | 5.00 % |", texts["cost"])
        self.assertIn("| error against the known solution by FP64's: geometric mean, worst | - | 2, 2 |", texts["precision"])

    def test_emulation_follows_the_command(self):
        path = self.out / "e.npz"
        subprocess.run([HALFTONE, "gen", "stencil2d", "--size", "30", "--coefficients", "lognormal", "-o", path, "--quiet"], check=True)
        a = common.load(path)
        for policy, name in (("fixed:f64", None), ("fixed:f32", "fp32"), ("fixed:bf16", "bf16")):
            low = emulate.rounded(a, name) if name else a
            got = emulate.solve(a, None, low=low)
            r = subprocess.run([HALFTONE, "solve", path, "--json", "--format", "tilecsc", "--precond", "none", "--policy", policy, "--no-guard", "--no-column-sums", "--stopping", "paper", "--ordering", "natural", "--backend", "cpu"], capture_output=True, text=True)
            report = json.loads(r.stdout)
            self.assertLessEqual(abs(report["iterations"] - got["iterations"]), 2 + got["iterations"] // 50, policy)
            self.assertAlmostEqual(np.log10(report["residual_true"]), np.log10(got["true"]), delta=0.3, msg=policy)

    def test_reuse(self):
        import reuse
        wave = [[0, 2] if k % 8 < 4 else [2, 2] for k in range(64)]  # upward at 8, 16, ...: an interval of 8 delays none
        s = reuse.study(wave)
        self.assertEqual((s["interval"], s["rises"], s["delayed"]), (8, 7, 0))
        self.assertGreater(s["delayed_next"], 0.1)


if __name__ == "__main__": unittest.main()
