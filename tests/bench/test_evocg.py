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
import xml.etree.ElementTree

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
import agents, common, emulate, made

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


class Averages(unittest.TestCase):
    def test_what_counts(self):
        """Certified runs do, whatever they took; others with a residual that is a solution's, after as many iterations as such a solve needs."""
        f64 = dict(matrix="m", iterations=100, outcome="converged", residual_true=1e-10, share_64=1.0, pairs=3, speedup=1.0)
        run = lambda outcome, iterations, residual: dict(f64, outcome=outcome, iterations=iterations, residual_true=residual)
        counts = [run("converged", 40, 1e-10), run("recursive_only", 100, 1e-3), run("recursive_only", 50, 0.09)]
        left = [run("recursive_only", 49, 1e-3), run("recursive_only", 110, 0.1), run("iteration_limit", 100, 1e-3), run("broke_down", 60, 1e-3)]
        self.assertTrue(all(common.worth(f64, r) for r in counts))
        self.assertFalse(any(common.worth(f64, r) for r in left))
        self.assertEqual(common.left_out([(f64, r) for r in left[:2] + counts]), ["m (49 of 100, 0.001)", "m (110 of 100, 0.1)"])


class Page(unittest.TestCase):
    """The table and the plots of docs/evocg.md, from the results that are kept."""
    def test_table_takes_the_place_of_the_one_before(self):
        page = (SOURCE / "docs/evocg.md").read_text()
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / "page.md"
            copy.write_text(page)
            for _ in range(2): subprocess.run([sys.executable, "-B", EVOCG / "summary.py", "--into", copy], check=True, timeout=60)
            got = copy.read_text()
        outside = lambda text: (text[:text.index("<!-- summary -->")], text[text.index("<!-- end of summary -->"):])
        self.assertEqual(outside(got), outside(page))
        rows = [line for line in got.split("<!-- summary -->")[1].split("<!-- end")[0].splitlines() if line.startswith("| ")]
        self.assertGreater(len(rows), 20)
        for line in rows: self.assertEqual(line.count(" | "), 2, line)

    def test_plots(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-B", EVOCG / "plots.py", "-o", pathlib.Path(folder) / "page.svg"], check=True, timeout=60)
            root = xml.etree.ElementTree.parse(pathlib.Path(folder) / "page.svg").getroot()
        panels, width = [e for e in root if e.tag.endswith("}g")], float(root.get("width"))
        self.assertEqual(len(panels), 10)
        for panel in panels:
            marks = [e for e in panel.iter() if e.tag.endswith(("}circle", "}polyline", "}polygon"))]
            self.assertGreater(len(marks), 2)
            for e in marks:
                numbers = [float(v) for v in re.findall(r"-?[0-9.]+", e.get("points") or f"{e.get('cx')},{e.get('cy')}")]
                self.assertTrue(all(0 <= v <= width for v in numbers))


class Made(unittest.TestCase):
    def test_dubcova(self):
        """Sizes, entries and how often each comes are Dubcova1's."""
        a = made.lobatto(2, 64)
        values, counts = np.unique(a.data.round(9), return_counts=True)
        self.assertEqual((a.shape[0], a.nnz, abs(a - a.T).max()), (16129, 253009, 0))
        self.assertEqual(dict(zip(values, counts)), {-0.40824829: 64008, -0.333333333: 31000, 0: 63504, 0.133333333: 15872, 0.204124145: 62496, 0.8: 4096, 1.733333333: 8064, 2.666666667: 3969})

    def test_lobatto_is_a_stiffness_matrix(self):
        """u = (1 - x^2)(1 - y^2) is in the space of order 2: its energy over [-1, 1]^2 is 256/45, whatever the order and the mesh."""
        for order, cells in ((2, 1), (2, 4), (3, 4)):
            a, x = made.lobatto(order, cells), np.linspace(-1, 1, cells + 1)
            hats, bubbles = 1 - x[1:-1] ** 2, np.full(cells, -2 * np.sqrt(2 / 3) / cells ** 2)
            one = np.concatenate([hats, np.stack([bubbles] + [0 * bubbles] * (order - 2), 1).ravel()])
            u = np.kron(one, one)
            self.assertAlmostEqual(u @ (a @ u), 256 / 45, places=12)

    def test_heat_conserves(self):
        """A*1 is the mass of each hat: all of the rectangle, for K*1 = 0."""
        a = made.heat(5, 9)
        self.assertEqual(a.nnz, 45 + 2 * (4 * 9 + 5 * 8 + 4 * 8))
        self.assertAlmostEqual(a.sum() * 512 ** 2, 4 * 8, places=9)
        self.assertGreater((a @ np.ones(45)).min(), 0)

    def test_slab(self):
        a = made.slab(8, 5, 4, 90000, 4)
        self.assertEqual((a.min(), a.max(), a.nnz), (-90000, 180016, 7 * 160 - 2 * (8 * 5 + 5 * 4 + 8 * 4)))


class Agents(unittest.TestCase):
    def test_products_at_one_level_and_mixed(self):
        rng = np.random.default_rng(1)
        a = sp.random(200, 200, 0.05, random_state=1, format="csr")
        a, p = (a + a.T + 10 * sp.eye(200)).tocsr(), rng.standard_normal(200)
        for round_p, unit in ((True, (0, 2.0 ** -24 * 3, 2.0 ** -8 * 3.1)), (False, (0, 2.0 ** -24, 2.0 ** -8))):
            s = agents.Stores(a, round_p)
            size, all_of = abs(a) @ np.abs(p), [s.product(np.full(4, l), p) for l in range(3)]
            for l in range(3): self.assertTrue(np.all(np.abs(all_of[l] - a @ p) <= (unit[l] + 1e-12) * size), (round_p, l))
            self.assertGreater(np.linalg.norm(all_of[2] - a @ p), 1e-4 * np.linalg.norm(a @ p))
            mixed, each = s.product(np.array([0, 2, 1, 2]), p), np.repeat([0, 2, 1, 2], 64)[:200]
            parts = sum(s.product(np.full(4, l), np.where(each == l, p, 0)) for l in range(3))
            self.assertLess(np.abs(mixed - parts).max(), 1e-12)

    def test_gradient_follows_the_loss(self):
        """Of the clipped loss with value and entropy, against differences, in FP64."""
        rng, rows = np.random.default_rng(1), np.arange(128)
        net = agents.Network(rng, (0.5, 0.1, 0))
        net.flat, net.gradient = net.flat.astype(np.float64), np.zeros(net.size)
        net.part, net.slope = net.views(net.flat), net.views(net.gradient)
        x, act, adv, goal = rng.standard_normal((128, 64)), rng.integers(0, 3, 128), rng.standard_normal(128), rng.standard_normal(128)
        old = net.forward(x)[0][rows, act] + 0.1 * rng.standard_normal(128)
        agents.slopes(net, x, act, adv, old, goal)
        slope = net.gradient.copy()
        def loss():
            log, v = net.forward(x)
            ratio = np.exp(log[rows, act] - old)
            return -np.mean(np.minimum(ratio * adv, np.clip(ratio, 0.8, 1.2) * adv)) + 0.25 * np.mean((v - goal) ** 2) + 0.02 * np.mean((np.exp(log) * log).sum(axis=1))
        for i in rng.choice(net.size, 40, replace=False):
            net.flat[i] += 1e-6
            more = loss()
            net.flat[i] -= 2e-6
            self.assertAlmostEqual((more - loss()) / 2e-6, slope[i], delta=1e-7 + 1e-4 * abs(slope[i]))
            net.flat[i] += 1e-6

    def test_advantages(self):
        """Without discount between two episodes, and with what the last state is worth where the second goes on."""
        got = agents.advantages([1.0, 2.0, 3.0], [1, 0, 1], np.array([0.5, 0.25, 0.125, 4.0]))
        second = 2 - 0.25
        self.assertTrue(np.allclose(got, [1 + 0.99 * 0.25 - 0.5 + 0.99 * 0.95 * second, second, 3 + 0.99 * 4 - 0.125]))


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
        text, data = self.run_one("published", "--only", "mesh", "--ways", "0,2", "--episodes", "25", "--evaluations", "1")
        self.assertTrue(all(w["best"]["converged"] and w["updates"] for w in data["matrices"]["mesh"]["ways"].values()))
        text, data = self.run_one("trajectories", "--only", "small")
        self.assertIn("</html>", (self.out / "out/trajectory-small.html").read_text()[-200:])
        self.assertIn("small:FP64", data["runs"])
        again = (self.out / "out/measured-cpu.json").read_text()
        self.run_one("precision", "--measured")
        self.assertEqual((self.out / "out/measured-cpu.json").read_text(), again)

    def test_what_is_left_out_is_told_once(self):
        r = subprocess.run([EVOCG / "run_all.sh", "0", *self.options, "--backend", "cuda", "--out", str(self.out / "none")], capture_output=True, text=True, timeout=300)
        told = r.stderr.splitlines()
        self.assertEqual((r.returncode, len(told)), (0, len(set(told))), r.stderr)
        self.assertEqual(sum("the time is over;" in l for l in told), 1)
        for experiment in ("saving", "published"): self.assertEqual(sum(f"{experiment} is left out with --backend cuda" in l for l in told), 1)
        self.assertIn("left out, since the time is over: trajectories reuse fp8", r.stderr)
        self.assertTrue(told[-1].endswith("of: training precision rule transfer jacobi cost endtoend"), told[-1])

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
        def bring(name, rows): (folder / f"{name}.json").write_text(json.dumps(dict(card="a card", commit="c", date="d", rows=rows)))
        library = dict.fromkeys(f for f in fields if "cusparse" in f or "graph" in f)
        bring("cg", [dict(r, **library) for r in rows])
        bring("product", [dict(rows[0], us_per_iteration=20.0)])  # where the library ran: its times are lent to cg
        bring("transfer", [dict(rows[0], us_per_iteration=80.0), dict(rows[0], policy="learned:mesh2e1-64.safetensors")])  # its own FP64 is its reference
        (folder / "policies").mkdir()
        (folder / "policies/small.cut.json").write_text(json.dumps(dict(time_s=8.0, episodes=300, interval=1)))
        (folder / "policies/small.json").write_text(json.dumps(dict(time_s=1.0, episodes=300, interval=64, delayed=0.05)))
        options = ["--out", out, "--table", self.out / "table.tsv", "--matrices", ""]
        later, petsc = self.out / "later", dict(rows[0], policy="petsc", us_per_iteration=120.0)  # a second batch, of which no training is as long
        (later / "policies").mkdir(parents=True)
        (later / "peers.json").write_text(json.dumps(dict(card="a card", commit="c2", date="d", rows=[*rows[:2], petsc])))
        for place, episodes in ((folder, 300), (later, 20)):
            head = json.dumps({"__metadata__": {"episodes": str(episodes)}}).encode()
            (place / "policies/small.safetensors").write_bytes(len(head).to_bytes(8, "little") + head)
        (later / "policies/small.json").write_text(json.dumps(dict(time_s=1.0, episodes=20, interval=1)))
        subprocess.run([sys.executable, "-B", EVOCG / "collect.py", folder, later, *options], check=True, capture_output=True, timeout=60)
        texts = {}
        for name in ("precision", "endtoend", "cost", "transfer"):
            subprocess.run([sys.executable, "-B", EVOCG / f"{name}.py", "--backend", "cuda", "--measured", *options], check=True, capture_output=True, timeout=60)
            texts[name] = (out / f"{name}-cuda.md").read_text()
        self.assertIn("a card", texts["precision"])
        self.assertIn("| speed against own FP64 | 1.28 | 1.10 |", texts["precision"])  # 100 x 40 us by 104 x 35 us
        self.assertIn("| iterations | +11.4 % | +4.0 % |", texts["precision"])
        self.assertIn("| true residual above it | not told | 1 of 1 small |", texts["precision"])
        self.assertIn("| product's share of FP64 CG, mean | 67.1 % | 25.0 % (cuSPARSE, sample form) |", texts["endtoend"])
        self.assertIn("| paper's engine, FP64 against cuSPARSE | - | 2.00 (2.00 to 2.00, 1 matrices) |", texts["endtoend"])
        self.assertIn("| paper's engine, FP64 against PETSc | - | 3.00 (3.00 to 3.00, 1 matrices) |", texts["endtoend"])
        self.assertIn(", d, c, then c2. ", texts["cost"])
        self.assertIn("| policy, mean | 1.09 % | 5.00 % |", texts["cost"])
        self.assertIn("| 9.0 s, 300 episodes, cut off | 64 | 5.0 % |", texts["cost"])
        self.assertIn("| their speed | 1.21 | 2.00 |", texts["transfer"])
        self.assertIn("| error against the known solution by FP64's: geometric mean, worst | - | 2, 2 |", texts["precision"])

    def test_emulation_follows_the_command(self):
        path = self.out / "e.npz"
        subprocess.run([HALFTONE, "gen", "stencil2d", "--size", "30", "--coefficients", "lognormal", "-o", path, "--quiet"], check=True)
        a = common.load(path)
        for policy, name in (("fixed:f64", None), ("fixed:f32", "fp32"), ("fixed:bf16", "bf16")):
            low = emulate.rounded(a, name) if name else a
            got = emulate.solve(a, None, low=low)
            r = subprocess.run([HALFTONE, "solve", path, "--json", "--format", "tilecsc", "--precond", "none", "--policy", policy, "--no-guard", *(["--no-column-sums"] if name else []), "--stopping", "paper", "--ordering", "natural", "--backend", "cpu"], capture_output=True, text=True)
            report = json.loads(r.stdout)
            self.assertLessEqual(abs(report["iterations"] - got["iterations"]), 2 + got["iterations"] // 50, policy)
            self.assertAlmostEqual(np.log10(report["residual_true"]), np.log10(got["true"]), delta=0.3, msg=policy)

    def test_shifted_and_grounded_matrices(self):
        def of(recipe):
            made.write(HALFTONE, recipe, self.out / "m.npz")
            return common.load(self.out / "m.npz")
        plain, lifted, held = of("shift 0 stencil2d --size 9"), of("shift 0.5 stencil2d --size 9"), of("ground 4 neumann --points 5 --nx 3 --ny 3")
        self.assertEqual(abs(lifted - plain - 0.5 * sp.eye(81)).max(), 0)
        self.assertEqual((held.shape[0], held.nnz), (8, 8 + 16))
        self.assertGreater(np.linalg.eigvalsh(held.toarray())[0], 0.1)

    def test_reuse(self):
        import reuse
        wave = [[0, 2] if k % 8 < 4 else [2, 2] for k in range(64)]  # upward at 8, 16, ...: an interval of 8 delays none
        s = reuse.study(wave)
        self.assertEqual((s["interval"], s["rises"], s["delayed"]), (8, 7, 0))
        self.assertGreater(s["delayed_next"], 0.1)


if __name__ == "__main__": unittest.main()
