"""The command from outside: every subcommand, exit statuses, outputs and what can go wrong. Standard library only.
SPDX-License-Identifier: BSD-3-Clause"""
import json
import math
import os
import pathlib
import pty
import resource
import select
import signal
import struct
import subprocess
import tempfile
import time
import unittest
import xml.etree.ElementTree

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


class Usage(Cli):
    def test_no_command_prints_the_usage_and_is_wrong(self):
        status, out, err = run()
        self.assertEqual((status, out), (2, ""))
        for command in COMMANDS:
            self.assertIn(command, err)

    def test_help(self):
        status, out, err = run("help")
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(run("--help"), (0, out, ""))
        self.assertEqual(run("-h"), (0, out, ""))
        for command in COMMANDS:
            status, out, err = run("help", command)
            self.assertEqual((status, err), (0, ""))
            self.assertTrue(out.startswith(f"halftone {command}"))
            self.assertEqual(run(command, "--help"), (0, out, ""))
            self.assertLessEqual(max(map(len, out.splitlines())), 100)
        _, out, _ = run("help", "solve")
        for option in ["-b ", "-x0", "-o ", "--history", "--report", "--config", "--json", "--rtol", "--precond", "--policy", "--threads",
                       "--[no-]exactness-flags"]:
            self.assertIn(option, out)
        self.fails("did you mean 'solve'", "help", "slove")

    def test_version(self):
        self.assertRegex(run("version")[1], r"^halftone \d+\.\d+\.\d+\n$")
        self.assertEqual(run("--version"), run("version"))

    def test_manual_page_is_the_one_checked_in(self):
        page = SOURCE / "docs" / "halftone.1"
        self.assertEqual(run("help", "--man")[1], page.read_text(), "run: build/halftone help --man > docs/halftone.1")

    def test_unknown_names_suggest_the_nearest(self):
        self.fails("did you mean 'solve'", "solv", self.a)
        self.fails("`halftone help` lists", "xyzzyxyzzy")
        self.fails("did you mean `halftone solve", str(self.a))
        self.fails("did you mean '--rtol'", "solve", self.a, "--rotl", "1e-8")
        self.fails("did you mean '--rtol'", "solve", self.a, "--rotl=1e-8")
        self.fails("did you mean '--rtol'", "solve", self.a, "-rtol", "1e-8")
        self.fails("did you mean '--history'", "solve", self.a, "--histroy", "h.csv")
        self.fails("`halftone help solve` lists", "solve", self.a, "--xyzzyxyzzyxyzzy")
        self.fails("did you mean 'stencil2d'", "gen", "stencil2", "-o", self.path("g.mtx"))
        self.fails("did you mean 'seed'", "gen", "wathen", "--sede", "1", "-o", self.path("g.mtx"))
        self.fails("did you mean 'wathen'", "help", "gen", "wathn")

    def test_bad_values(self):
        self.fails("needs a value", "solve", self.a, "--rtol")
        self.fails("needs a value", "solve", self.a, "-o")
        self.fails(["rtol", "'abc'"], "solve", self.a, "--rtol", "abc")
        self.fails("between", "solve", self.a, "--rtol", "-1")
        self.fails("none|jacobi", "solve", self.a, "--precond", "nothing")
        self.fails("takes no value", "solve", self.a, "--json=1")
        self.fails("policy", "solve", self.a, "--policy", "fixed:f17")
        self.fails("one word too many", "solve", self.a, self.a)
        self.fails("needs a matrix file", "solve")
        self.fails("needs a file", "convert", self.a)
        self.fails("--repeat", "bench", self.a, "--repeat", "0")
        self.fails("--steps", "info", self.a, "--steps", "many")
        self.fails("between them", "bench", self.a, "--policy", "auto,,auto")
        self.fails("needs a kind", "gen", "-o", self.path("g.mtx"))
        self.fails("-o", "gen", "wathen")

    def test_empty_arguments_are_wrong_not_fatal(self):
        for args in (["solve", ""], ["solve", self.a, "-o", ""], ["solve", self.a, "-b", ""], ["solve", self.a, "--config", ""],
                     ["info", ""], ["gen", "", "-o", "g.mtx"], ["", ""], ["solve", self.a, "--rtol", ""], ["solve", self.a, "--rtol="]):
            status, out, err = run(*args)
            self.assertEqual((status, out, len(err.splitlines())), (2, "", 1), args)


def write_policy(path, metadata=None, tensors=None, weights=None):
    """A policy of the kind tiles with 2 hidden units that always says FP64; what differs from a good file is given."""
    shapes = {"backbone.0.weight": [2, 64], "backbone.0.bias": [2], "backbone.2.weight": [2, 2], "backbone.2.bias": [2], "policy.weight": [3, 2],
              "policy.bias": [3], "value.weight": [1, 2], "value.bias": [1], **(tensors or {})}
    header = {"__metadata__": {"format": "halftone-policy", "format_version": "1", "kind": "tiles", "state": "paper", "reward": "paper",
                               "actions": "f64,f32,16", "interval": "4", "hidden": "2", "trained_on": "nothing", "seed": "1", "episodes": "0",
                               "version": "0", **(metadata or {})}}
    at = 0
    for name, shape in shapes.items():
        size = 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + struct.pack(f"<{at // 4}f", *(weights or [0.0] * (at // 4))))
    return f"learned:{path}"


class LearnedPolicies(Cli):
    def test_solves_and_says_who_decided(self):
        policy = write_policy(self.path("mine.safetensors"))
        report = self.solves(self.a, "--policy", policy)
        self.assertEqual(report["policy"], "learned:mine")
        self.assertIn("every 4 iterations, learned in 0 episodes on nothing", report["policy_chosen"])
        self.assertEqual(report["options"]["policy"], policy)
        self.assertEqual(report["iterations"], self.solves(self.a, "--policy", "fixed:f64")["iterations"])
        status, out, err = run("bench", self.a, "--repeat", "1", "--policy", f"fixed:f64,{policy}")
        self.assertEqual((status, err), (0, ""))
        self.assertIn("learned:mine", out)

    def test_refused_files(self):
        name, nan = self.path("p.safetensors"), float("nan")
        weights = [0.0] * 148
        cases = [({"format": "other"}, None, None, "something else"), ({"format_version": "9"}, None, None, "format_version"),
                 ({"kind": "columns"}, None, None, "'columns'"), ({"state": "features"}, None, None, "'state'"),
                 ({"actions": "f64,f8,16"}, None, None, "f64,f8,16"), ({"interval": "often"}, None, None, "'often'"),
                 ({"hidden": "3"}, None, None, "[3, 64]"), ({"hidden": "1e9"}, None, None, "'1e9'"),
                 (None, {"policy.weight": [2, 3]}, None, "[3, 2]"), (None, {"more": [1]}, None, "9"),
                 (None, None, [nan] + weights[1:], "nan")]
        for metadata, tensors, numbers, words in cases:
            self.fails([str(name), "expected", "found", "train", words], "solve", self.a, "--policy", write_policy(name, metadata, tensors, numbers))
        whole = name.read_bytes()
        for length in (0, 5, 8, 100, len(whole) // 2, len(whole) - 1):
            name.write_bytes(whole[:length])
            self.fails([str(name), "expected", "found"], "solve", self.a, "--policy", f"learned:{name}")
        self.fails([str(self.a), "another kind of file"], "solve", self.a, "--policy", f"learned:{self.a}")
        self.fails(["nowhere", "cannot be opened"], "solve", self.a, "--policy", "learned:nowhere")
        self.fails("did you mean 'learned:FILE'", "solve", self.a, "--policy", "learned:")
        self.fails("did you mean 'budget'", "solve", self.a, "--policy", "bugdet")


class Train(Cli):
    def train(self, *options):
        status, out, err = run("train", self.a, *options)
        self.assertEqual((status, err), (0, ""))
        return out

    def test_a_policy_is_learned_and_used(self):
        policy, history = self.path("p.safetensors"), self.path("h.csv")
        report = json.loads(self.train("-o", policy, "--history", history, "--episodes", "20", "--json"))
        self.assertEqual((report["backend"], report["options"]["backend"]), ("cpu", "auto"))
        self.assertEqual((report["outcome"], report["options"]["episodes"], report["missed"]), ("finished", 20, 0))
        self.assertEqual(len(pathlib.Path(history).read_text().splitlines()), report["episodes"] + 1)
        solved = self.solves(self.a, "--policy", f"learned:{policy}")
        self.assertIn(f"{report['episodes']} episodes on" if report["chosen"] == "learned" else report["contest"], solved["policy_chosen"])
        self.assertEqual(report["chosen"], json.loads(run("info", policy, "--json")[1])["chosen"])
        shown = self.train("-o", policy, "--episodes", "2")
        self.assertIn("FP64", shown)
        self.assertIn("2 were asked for", shown)  # eight end at once
        self.assertIn("of it for the competition", shown)
        self.assertEqual(self.train("-o", policy, "--episodes", "2", "--quiet"), "")

    def test_a_policy_for_whole_matrices_is_learned_and_used(self):
        policy = self.path("p.safetensors")
        windows = ["-o", policy, "--state", "features", "--update", "64"]
        report = json.loads(self.train(*windows, "--episodes", "20", "--json"))
        self.assertEqual((report["options"]["reward"], report["missed"]), ("time", 0))
        self.assertTrue(report["options"]["actions"].startswith("f64"))
        chosen = self.solves(self.a, "--policy", f"learned:{policy}")["policy_chosen"]
        self.assertIn(f"learned in {report['episodes']} episodes" if report["chosen"] == "learned" else report["chosen"], chosen)
        self.assertIn("by the model", report["contest"])
        self.assertIn("modelled time", self.train(*windows, "--episodes", "2"))
        self.fails("use --reward auto", "train", self.a, *windows, "--reward", "paper")

    def test_the_librarys_own_policy(self):
        for name in ("learned", "learned:universal"):
            report = self.solves(self.a, "--policy", name)
            self.assertEqual(report["policy"], "learned:universal")
            self.assertIn("a network says, learned in", report["policy_chosen"])

    def test_the_same_seed_gives_the_same_bytes_resumed_or_not(self):
        whole, parts, state = self.path("whole"), self.path("parts"), self.path("state")
        self.train("-o", whole, "--episodes", "60", "--threads", "1")
        self.train("-o", parts, "--episodes", "20", "--save", state)
        self.train("-o", parts, "--episodes", "60", "--resume", state)
        self.assertEqual(pathlib.Path(whole).read_bytes(), pathlib.Path(parts).read_bytes())

    def test_refusals(self):
        policy = self.path("p.safetensors")
        self.fails("add -o", "train", self.a)
        self.fails("needs a matrix file", "train", "-o", policy)
        self.fails("did you mean '--episodes'", "train", self.a, "-o", policy, "--episode", "3")
        self.fails("not the state of a training", "train", self.a, "-o", policy, "--resume", self.a)
        for backend in ("cuda:", "cuda:x", "cuda:-1"):
            self.fails(["by its number from 0", "cuda:0", backend], "train", self.a, "-o", policy, "--backend", backend)
        for actions in ("f64", "f32,f64", "f64,f31", "f64,f32@0", "f64,budget"):
            self.fails(["budget:THETA", "@ITERATIONS", f"'{actions}'"], "train", self.a, "-o", policy, "--state", "features", "--actions", actions)
        for without_effect in (("--reward", "paper", "--judge", "time"), ("--compete", "no", "--judge", "model"), ("--actions", "f64,f32"), ("--credit", "shared")):
            self.fails("leave", "train", self.a, "-o", policy, *without_effect)
        self.fails("lanes", "train", self.a, "-o", policy, "--lanes", "9", "--update", "8")
        self.fails("--threads takes", "train", self.a, "-o", policy, "--threads", "many")
        self.assertFalse(os.path.exists(policy))


class Solve(Cli):
    def test_json_holds_one_object_with_the_promised_keys(self):
        report = self.solves(self.a)
        for key in REQUIRED:
            self.assertIsNotNone(report[key], key)
        self.assertEqual(report["outcome"], "converged")
        self.assertEqual((report["n"], report["nnz"]), (self.n, len(self.matrix[1])))
        self.assertLessEqual(report["residual_true"], 1e-10)
        self.assertLess(report["error_known"], 1e-8)
        self.assertEqual(report["options"]["rtol"], 1e-10)
        self.assertIs(report["options"]["exactness-flags"], True)

    def test_the_answer_is_one(self):
        x = self.path("x.mtx")
        for b, known in ((None, None), ("ones", None), ("random:5", None), ("A*random:5", None)):
            report = self.solves(self.a, "-o", x, *(["-b", b] if b else []))
            solution = read_vector(x)[0]
            if b is None:
                self.assertLess(relative_residual(self.matrix, solution, multiply(self.matrix, [1.0] * self.n)), 1.01e-10)
            if b == "ones":
                self.assertLess(relative_residual(self.matrix, solution, [1.0] * self.n), 1.01e-10)
            self.assertEqual(report["error_known"] is None, b in ("ones", "random:5"))

    def test_screen(self):
        status, out, err = run("solve", self.a)
        self.assertEqual((status, err), (0, ""))
        for word in ["matrix", "unknowns", "symmetric", "jacobi", "policy", "storage", "thread", "time", "set-up", "bytes", "residual", "true",
                     "backward error", "condition", "convergence", "verdict", "solved in"]:
            self.assertIn(word, out)
        self.assertLessEqual(len(out.splitlines()), 30)
        self.assertEqual(run("solve", self.a, "--quiet"), (0, "", ""))

    def test_forms_of_options(self):
        self.assertEqual(self.solves(self.a, "--rtol=1e-4")["options"]["rtol"], 1e-4)
        self.assertEqual(self.solves("--rtol", "1e-4", self.a)["options"]["rtol"], 1e-4)
        self.assertIs(self.solves(self.a, "--no-exactness-flags")["options"]["exactness-flags"], False)
        self.assertIs(self.solves(self.a, "--exactness-flags=no")["options"]["exactness-flags"], False)
        self.assertIs(self.solves(self.a, "--no-exactness-flags", "--exactness-flags")["options"]["exactness-flags"], True)
        self.assertEqual(self.solves(self.a, "--threads", "1")["threads"], 1)
        dashed = self.path("-a.mtx")
        dashed.write_text(self.a.read_text())
        done = subprocess.run([HALFTONE, "solve", "--quiet", "--", "-a.mtx"], cwd=self.dir, timeout=60)
        self.assertEqual(done.returncode, 0)

    def test_standard_input_and_output(self):
        report = self.solves("-", input=self.a.read_text())
        self.assertEqual(report["outcome"], "converged")
        status, out, err = run("solve", self.a, "-o", "-")
        self.assertEqual((status, err), (0, ""))
        self.assertLess(relative_residual(self.matrix, read_vector(out)[0], multiply(self.matrix, [1.0] * self.n)), 1.01e-10)
        self.fails("standard output", "solve", self.a, "-o", "-", "--json")
        self.fails("standard input", "solve", "-", "-b", "-", input="")

    def test_several_right_hand_sides_in_one_call(self):
        b, x = self.path("b2.mtx"), self.path("x2.mtx")
        columns = [[1.0] * self.n, [math.sin(i) for i in range(self.n)], [float(i % 3 - 1) for i in range(self.n)]]
        write_vector(b, columns)
        report = self.solves(self.a, "-b", b, "-o", x)
        self.assertEqual(report["columns"], 3)
        self.assertEqual(sum(c["iterations"] for c in report["per_column"]), report["iterations"])
        for solution, column in zip(read_vector(x), columns):
            self.assertLess(relative_residual(self.matrix, solution, column), 1.01e-10)
        self.assertEqual(len(read_vector(x)), 3)
        self.assertEqual(self.solves(self.a, "-b", b, "-x0", x)["iterations"], 0)

    def test_starting_vector(self):
        x = self.path("x0.mtx")
        write_vector(x, [[1.0] * self.n])
        report = self.solves(self.a, "-x0", x)
        self.assertEqual((report["iterations"], report["outcome"]), (0, "converged"))
        self.assertEqual(self.solves(self.a, "-x0", "ones")["iterations"], 0)
        self.assertGreater(self.solves(self.a, "-x0", "random:1")["iterations"], 0)

    def test_vectors_that_do_not_fit(self):
        short = self.path("short.mtx")
        write_vector(short, [[1.0] * (self.n - 1)])
        self.fails("", "solve", self.a, "-b", short)
        self.fails("", "solve", self.a, "-x0", short)
        self.fails("", "solve", self.a, "-b", "one")
        two = self.path("two.mtx")
        write_vector(two, [[1.0] * self.n] * 2)
        self.fails("", "solve", self.a, "-x0", two)

    def test_history(self):
        history = self.path("h.csv")
        report = self.solves(self.a, "--history", history)
        lines = history.read_text().splitlines()
        self.assertEqual(lines[0], "iteration,residual_recursive")
        rows = [l.split(",") for l in lines[1:]]
        self.assertEqual([int(r[0]) for r in rows], list(range(report["iterations"] + 1)))
        self.assertAlmostEqual(float(rows[0][1]), 1, delta=1e-12)
        self.assertLess(abs(math.log(float(rows[-1][1]) / report["residual_recursive"])), 1e-3)

    def test_report_file_is_the_json_object(self):
        file = self.path("r.json")
        report = self.solves(self.a, "--report", file)
        self.assertEqual(json.loads(file.read_text()), report)

    def test_config_file(self):
        config = self.made("c.conf", "# comment\nrtol = 1e-4\nprecond=none # and more\n\n")
        report = self.solves(self.a, "--config", config)
        self.assertEqual((report["options"]["rtol"], report["precond"]), (1e-4, "none"))
        self.assertEqual(self.solves(self.a, "--rtol", "1e-6", "--config", config)["options"]["rtol"], 1e-6)
        self.fails([":2:", "did you mean 'rtol'"], "solve", self.a, "--config", self.made("d.conf", "\nrtoll = 1\n"))
        self.fails("cannot be opened", "solve", self.a, "--config", self.path("none.conf"))

    def test_not_converged_is_status_1_with_the_best_iterate(self):
        x = self.path("x.mtx")
        status, out, err = run("solve", self.a, "--max-iterations", "3", "--json", "-o", x)
        report = json.loads(out)
        self.assertEqual((status, report["outcome"], report["iterations"]), (1, "iteration_limit", 3))
        self.assertEqual(len(err.splitlines()), 1)
        b = multiply(self.matrix, [1.0] * self.n)
        self.assertAlmostEqual(relative_residual(self.matrix, read_vector(x)[0], b) / report["residual_true"], 1, delta=1e-6)
        status, out, err = run("solve", self.a, "--max-iterations", "3")
        self.assertEqual((status, err), (1, ""))
        self.assertIn("not solved", out)
        status, out, err = run("solve", self.a, "--max-iterations", "3", "--quiet")
        self.assertEqual((status, out, len(err.splitlines())), (1, "", 1))

    def test_names_of_any_bytes_keep_json_valid(self):
        odd = os.fsencode(self.dir) + b'/q"uote\\ \xff\xc3\xa9\n.mtx'
        with open(odd, "w") as f:
            f.write(self.a.read_text())
        done = subprocess.run([HALFTONE, "solve", odd, "--json"], capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(json.loads(done.stdout.decode())["matrix"].endswith('/q"uote\\ \ufffdé\n.mtx'))


class Matrices(Cli):
    """What cannot be solved, and what can although it looks bad."""
    HEAD = "%%MatrixMarket matrix coordinate real symmetric\n"
    GENERAL = "%%MatrixMarket matrix coordinate real general\n"

    def test_bad_files_leave_no_output(self):
        texts = {"empty": "", "truncated": self.HEAD + "3 3 3\n1 1 2\n", "index": self.HEAD + "2 2 2\n0 1 1\n2 2 1\n", "text": self.HEAD + "1 1 1\n1 1 one\n",
                 "nan": self.HEAD + "1 1 1\n1 1 nan\n", "zero": self.HEAD + "0 0 0\n", "rectangle": self.GENERAL + "2 3 1\n1 1 1\n",
                 "huge": self.HEAD + "3000000000 3000000000 3000000000000\n1 1 1\n"}
        for name, text in texts.items():
            x = self.path("x.mtx")
            self.fails("", "solve", self.made(f"{name}.mtx", text), "-o", x, "--json")
            self.assertFalse(x.exists(), name)
        self.fails("cannot be opened", "solve", self.path("missing.mtx"))

    def test_an_unsymmetric_matrix_is_told_from_the_start(self):
        x = self.path("x.mtx")
        a = self.made("u.mtx", self.GENERAL + "2 2 4\n1 1 4\n1 2 1\n2 1 1.5\n2 2 4\n")
        status, out, err = run("solve", a, "-o", x, "--json")
        self.assertEqual((status, json.loads(out)["outcome"], len(err.splitlines())), (1, "not_symmetric", 1))
        self.assertIn("(1,2)", err)
        self.assertFalse(x.exists())
        status, out, err = run("solve", a)
        self.assertEqual((status, len(out.splitlines()), err), (1, 3, ""))

    def test_memory_that_is_not_there(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        g = self.path("g.mtx")
        self.fails("memory is exhausted", "gen", "stencil3d", "--points", "27", "--size", "200", "-o", g, preexec_fn=limit)
        self.assertFalse(g.exists())

    def test_indefinite_and_singular(self):
        exchange = self.made("e.mtx", self.HEAD + "2 2 1\n2 1 1\n")
        b = self.path("b.mtx")
        write_vector(b, [[1.0, -1.0]])
        self.assertEqual(self.solves(exchange, "-b", b, status=1)["outcome"], "indefinite")
        neumann = self.made("n.mtx", self.HEAD + "3 3 5\n1 1 1\n2 2 2\n3 3 1\n2 1 -1\n3 2 -1\n")
        report = self.solves(neumann)
        self.assertEqual(report["outcome"], "converged")
        self.assertIsNone(report["error_known"])
        self.assertIn("random", report["right_side"])
        self.assertNotEqual(self.solves(neumann, "-b", "ones", status=1)["outcome"], "converged")

    def test_tiny_systems(self):
        one = self.made("one.mtx", self.HEAD + "1 1 1\n1 1 4\n")
        self.assertEqual(self.solves(one)["outcome"], "converged")
        zero = self.path("zero.mtx")
        write_vector(zero, [[0.0] * self.n])
        report = self.solves(self.a, "-b", zero)
        self.assertEqual((report["iterations"], report["outcome"]), (0, "converged"))


class Outputs(Cli):
    def test_unwritable_outputs_are_found_before_the_work(self):
        for option in ("-o", "--history", "--report"):
            for path in (self.dir / "nowhere" / "x.mtx", self.dir):
                begin = time.monotonic()
                self.fails("cannot be written", "solve", self.a, option, path)
                self.assertLess(time.monotonic() - begin, 5)
        self.fails("its name must end", "solve", self.a, "-o", self.path("x.txt"))
        self.fails("its name must end", "gen", "wathen", "-o", self.path("x.txt"))
        self.fails("cannot be written", "gen", "wathen", "-o", self.dir / "nowhere" / "g.mtx")
        self.fails("cannot be written", "convert", self.a, "-o", self.dir / "nowhere" / "g.mtx")

    def test_a_full_disk(self):
        for option in ("-o", "--history", "--report"):
            self.fails("cannot be written", "solve", self.a, option, "/dev/full", "--quiet")
        for args in (["solve", self.a], ["solve", self.a, "--json"], ["help"], ["info"], ["info", self.a], ["solve", self.a, "-o", "-"],
                     ["bench", self.a, "--repeat", "1"], ["version"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([HALFTONE, *map(str, args)], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
            self.assertEqual(done.returncode, 2, args)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertTrue(pathlib.Path("/dev/full").is_char_device())

    def test_a_closed_standard_output(self):
        for args in (["solve", self.a], ["solve", self.a, "--json"], ["help"], ["info", self.a]):
            command = f"'{HALFTONE}' {' '.join(map(str, args))} >&-"
            done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, text=True, timeout=60)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), (args, done.stderr))
        x = self.path("x.mtx")
        done = subprocess.run(["sh", "-c", f"'{HALFTONE}' solve '{self.a}' -o '{x}' --quiet >&- 2>&-"], timeout=60)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(len(read_vector(x)[0]), self.n)

    def test_a_write_that_fails_in_the_middle_leaves_nothing(self):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it, and a child would inherit that
            resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
        for option, name in (("-o", "x.mtx"), ("--history", "h.csv"), ("--report", "r.json")):
            target = self.path(name)
            before = set(os.listdir(self.dir))
            self.fails("cannot be written", "solve", self.a, option, target, "--quiet", preexec_fn=limit)
            self.assertEqual(set(os.listdir(self.dir)), before)
        old = self.made("old.mtx", "old\n")
        self.fails("cannot be written", "convert", self.a, "-o", old, preexec_fn=limit)
        self.assertEqual(old.read_text(), "old\n")

    def test_old_outputs_survive_bad_input(self):
        x = self.made("keep.mtx", "old\n")
        self.fails("", "solve", self.path("missing.mtx"), "-o", x)
        self.assertEqual(x.read_text(), "old\n")


    def test_no_output_is_another_file_of_the_command(self):
        """Two outputs, or an output and an input, under whatever name: nothing is written."""
        inside = self.dir / "." / "a.mtx"
        link = self.path("link.mtx")
        os.symlink(self.a, link)
        report = self.path("apart.json")
        self.assertEqual(run("solve", self.a, "--report", report, "--quiet")[0], 0)
        state = self.path("one")
        before = {name: (self.dir / name).read_bytes() for name in os.listdir(self.dir)}
        both, twice = "are the same file", "would be overwritten"
        for words, *args in ((both, "solve", self.a, "-o", "one.mtx", "--report", "one.mtx"),
                             (both, "solve", self.a, "-o", "one.mtx", "--history", "./one.mtx"),
                             (twice, "solve", self.a, "-o", self.a), (twice, "solve", self.a, "-o", inside),
                             (twice, "solve", self.a, "-o", link), (twice, "solve", self.a, "--report", self.a),
                             (twice, "solve", self.a, "-b", report, "--report", report),
                             (twice, "train", self.a, "-o", self.a), (both, "train", self.a, "-o", state, "--save", state),
                             (twice, "report", report, "-o", report)):
            self.fails(words, *args, cwd=self.dir)
        self.assertEqual({name: (self.dir / name).read_bytes() for name in os.listdir(self.dir)}, before)
        x = self.path("start.npy")
        self.assertEqual(run("solve", self.a, "-o", x, "--quiet")[0], 0)
        self.assertEqual(run("solve", self.a, "-x0", x, "-o", x, "--quiet")[0], 0)
        self.assertEqual(run("solve", self.a, "-o", "/dev/null", "--report", "/dev/null", "--quiet")[0], 0)
        self.assertEqual(run("solve", self.a, "--history", "/dev/null", "--report", "/dev/null", "--quiet")[0], 0)

    def test_empty_names(self):
        for args in (("solve", ""), ("solve", self.a, "-b", ""), ("solve", self.a, "-x0", ""), ("solve", self.a, "--config", ""),
                     ("solve", self.a, "-o", ""), ("report", "", "-o", self.path("r.html")), ("info", ""),
                     ("train", self.a, "-o", self.path("p"), "--resume", "")):
            self.fails("is empty", *args)

    def test_a_solution_that_is_not_finite_is_not_written(self):
        a = self.made("chain.mtx", "%%MatrixMarket matrix coordinate real symmetric\n"
                      "4 4 7\n1 1 2\n2 2 2\n3 3 2\n4 4 1.01\n2 1 -1\n3 2 -1\n4 3 -1\n")
        b = self.made("large.mtx", "%%MatrixMarket matrix array real general\n4 1\n1e308\n-1e308\n1e308\n1.5e308\n")
        x = self.path("beyond.mtx")
        status, out, err = run("solve", a, "-b", b, "-o", x, "--json")
        report = json.loads(out)
        self.assertEqual((status, report["outcome"]), (1, "non_finite"))
        self.assertIn("leaves the range of FP64", report["detail"])
        self.assertIn("was not written", err)
        self.assertFalse(x.exists())

    def test_bench_tells_what_was_not_solved(self):
        a = self.made("negative.mtx", "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 1\n2 2 -1\n")
        self.assertEqual(run("bench", a, "--repeat", "1")[0], 1)
        self.assertEqual(run("bench", self.a, "--repeat", "1")[0], 0)

    def test_a_value_that_vanishes_is_told(self):
        a = self.made("vanishing.mtx", "%%MatrixMarket matrix coordinate real symmetric\n3 3 4\n1 1 1\n2 2 1\n3 3 1\n2 1 1.5e-400\n")
        self.assertIn("1 value is too small for double precision", run("solve", a)[2])
        a = self.made("zero.mtx", "%%MatrixMarket matrix coordinate real symmetric\n3 3 4\n1 1 1\n2 2 1\n3 3 1\n2 1 -0.0e-400\n")
        self.assertEqual(run("solve", a)[2], "")

    def test_a_triangle_in_an_npz(self):
        entries = "1 1 4\n2 2 4\n3 3 4\n", "2 1 -1\n3 2 -1\n", "1 2 -1\n2 3 -1\n"
        for part, words in ((entries[1], "save A + tril(A,-1).T"), (entries[2], "save A + triu(A,1).T")):
            a = self.made("triangle.mtx", f"%%MatrixMarket matrix coordinate real general\n3 3 5\n{entries[0]}{part}")
            packed = self.path("triangle.npz")
            self.assertEqual(run("convert", a, "-o", packed)[0], 0)
            self.fails(["only one triangle is stored", words], "solve", packed)
            self.assertEqual(run("solve", a)[0], 1)  # the first line says what is meant

    def test_a_config_file_with_a_mark(self):
        config = self.made("mark.cfg", "\ufeffrtol = 1e-3\n")
        report = json.loads(run("solve", self.a, "--config", config, "--json")[1])
        self.assertEqual(report["options"]["rtol"], 1e-3)

    def test_a_matrix_that_does_not_fit_is_refused_at_once(self):
        if os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE") > 600 << 30:
            self.skipTest("it fits")
        begin = time.monotonic()
        self.fails("of memory", "gen", "stencil3d", "--points", "27", "--size", "1290", "-o", self.path("never.mtx"))
        self.assertLess(time.monotonic() - begin, 30)

    def test_training_tells_why_a_matrix_cannot_be_solved(self):
        a = self.made("hidden.mtx", "%%MatrixMarket matrix coordinate real symmetric\n3 3 5\n1 1 1\n2 1 2\n2 2 1\n3 2 1\n3 3 1\n")
        for more in ((), ("--state", "features", "--reward", "time")):
            self.fails("negative eigenvalue", "train", a, "-o", self.path("p"), "--episodes", "1", *more)

    def test_threads_that_cannot_be_started(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))
        # gen takes all threads for any size, which solve does not
        status, _, err = run("gen", "stencil2d", "--size", "12", "-o", self.path("never.mtx"), "--quiet", preexec_fn=limit,
                             env={**os.environ, "OMP_NUM_THREADS": "256"})
        if "sanitizer" not in err.lower():
            self.assertEqual(status, 2, err)


class Trace(Cli):
    """--trace, and the page that is made of it."""

    def traced(self, name, *args, status=0):
        file = self.path(name)
        got, _, err = run("solve", *args, "--trace", "--report", file, "--quiet")
        self.assertEqual(got, status, err)
        return file, json.loads(file.read_text())

    def counts(self, trace):
        """Iteration, and blocks at 16, 32 and 64 bits, of each change of levels."""
        for entry in trace["levels"]:
            self.assertEqual(sum(g[0] for g in entry["groups"]), trace["groups"])
            counts = [sum(g[0] * g[1 + k] for g in entry["groups"]) for k in range(3)]
            self.assertEqual(sum(counts), trace["blocks"])
            yield entry["iteration"], counts

    def test_no_trace_unless_asked(self):
        self.assertNotIn("trace", self.solves(self.a))
        self.assertIn("trace", self.solves(self.a, "--trace"))

    def test_an_fp64_run_has_one_record_of_levels(self):
        _, report = self.traced("f.json", self.a, "--policy", "fixed:f64")
        trace, last = report["trace"], report["iterations"]
        self.assertEqual(list(self.counts(trace)), [(0, [0, 0, trace["blocks"]])])
        self.assertEqual([(r["iteration"], r["why"]) for r in trace["true_residuals"]], [(0, "start"), (last, "claim")])
        self.assertEqual(trace["true_residuals"][-1]["residual"], report["residual_true"])
        self.assertEqual([i for i, _ in trace["history"]], list(range(last + 1)))
        self.assertEqual((trace["times"][0][0], trace["times"][-1][0]), (0, last))
        seconds = [t for _, t in trace["times"]]
        self.assertEqual(seconds, sorted(seconds))
        self.assertLessEqual(seconds[-1], report["time_solve_s"])

    def test_levels_account_for_every_byte(self):
        """With one column block every product reads the whole matrix at that block's level."""
        a = self.path("one-block.mtx")
        self.assertEqual(run("gen", "stencil2d", "--size", "8", "--coefficients", "lognormal", "--seed", "1", "-o", a)[0], 0)
        common = ["--no-exactness-flags", "--precond", "none", "--policy-interval", "1", "--stopping", "paper", "--rtol", "1e-9"]
        sweep = {}
        for name, key in (("f64", "bytes_f64"), ("f32", "bytes_f32"), ("bf16", "bytes_16")):
            report = self.solves(a, *common, "--policy", f"fixed:{name}", "--max-iterations", "8", status=1)
            self.assertEqual(report["iterations"], 8)
            sweep[key] = report[key] / 9 if key != "bytes_f64" else None  # the 9th product is made when the limit stops the loop
        _, report = self.traced("b.json", a, *common, "--policy", "budget", "--max-iterations", "40", status=1)
        changes = list(self.counts(report["trace"]))
        self.assertEqual(report["trace"]["blocks"], 1)
        self.assertGreater(len(changes), 1)
        products, level = {"bytes_16": 0, "bytes_f32": 0}, None
        holds = dict(changes)
        for k in range(report["iterations"] + 1):
            level = holds.get(k, level)
            for key, index in (("bytes_16", 0), ("bytes_f32", 1)):
                products[key] += level[index]
        self.assertGreater(sum(products.values()), 0)
        for key, count in products.items():
            self.assertEqual(report[key], count * sweep[key], (key, changes))

    def test_a_run_that_is_guarded(self):
        _, report = self.traced("g.json", self.a, "--policy", "fixed:bf16", "--no-exactness-flags")
        whys = [r["why"] for r in report["trace"]["true_residuals"]]
        self.assertGreaterEqual(whys.count("replacement"), report["replacements"] - whys.count("claim"))
        self.assertGreater(report["replacements"], 0)

    def parse(self, page):
        """Well formed, nothing from outside, and every mark inside its picture. Returns the root."""
        text = page.read_text()
        root = xml.etree.ElementTree.fromstring(text.replace("<!DOCTYPE html>", ""))
        for word in ("http:", "https:", "src=", "@import", "url("):
            self.assertNotIn(word, text)
        for svg in root.iter("svg"):
            _, _, width, height = map(float, svg.get("viewBox").split())
            for mark in svg.iter():
                for key, most in (("x", width), ("x1", width), ("x2", width), ("cx", width), ("y", height), ("y1", height), ("y2", height), ("cy", height)):
                    if mark.get(key):
                        self.assertTrue(0 <= float(mark.get(key)) <= most, xml.etree.ElementTree.tostring(mark))
                if mark.tag == "rect":
                    self.assertLessEqual(float(mark.get("x")) + float(mark.get("width")), width)
                if mark.tag == "path":
                    self.assertNotRegex(mark.get("d"), "nan|inf")
        return root

    def test_a_page_of_several_runs(self):
        files = [self.traced(f"{k}.json", self.a, *options)[0]
                 for k, options in enumerate((["--policy", "budget", "--no-exactness-flags", "--policy-interval", "1"], ["--policy", "fixed:f64"],
                                              ["--policy", "fixed:f64", "--precond", "ic0"], ["--format", "csr"]))]
        files.append(self.traced("limit.json", self.a, "--max-iterations", "3", status=1)[0])
        neumann = self.made("n.mtx", Matrices.HEAD + "3 3 5\n1 1 1\n2 2 2\n3 3 1\n2 1 -1\n3 2 -1\n")
        status, refused = run("solve", neumann, "-b", "ones", "--trace", "--json")[:2]
        self.assertEqual((status, json.loads(refused)["trace"]["history"]), (1, []))
        files.append(self.made("refused.json", refused))
        page = self.path("p.html")
        self.assertEqual(run("report", *files, "-o", page, "--quiet"), (0, "", ""))
        root = self.parse(page)
        text = "".join(root.itertext())
        for words in ("Residual against iterations", "Residual against time", "Precision mix", "Precision over the matrix", "Time by phase",
                      "Bytes by precision", "a, fixed:f64 (2)", "iteration_limit", "singular", "no levels"):
            self.assertIn(words, text)
        self.assertEqual(len(list(root.find(".//tbody"))), 6)

    def test_a_page_without_a_trace(self):
        file, page = self.path("plain.json"), self.path("plain.html")
        self.assertEqual(run("solve", self.a, "--report", file, "--quiet")[0], 0)
        self.assertEqual(run("report", file, "-o", page)[0], 0)
        self.assertIn("kept no trace", "".join(self.parse(page).itertext()))

    def test_names_cannot_become_markup(self):
        bad = self.dir / "<b onload='x'>&\"<script>.mtx"
        bad.write_text(self.a.read_text())
        file, _ = self.traced("bad.json", bad)
        page = self.path("bad.html")
        self.assertEqual(run("report", file, "-o", page, "--title", "</title><script>alert(1)</script>\x01", "--quiet")[0], 0)
        self.assertIsNone(self.parse(page).find(".//script"))
        odd = subprocess.run([HALFTONE, "report", file, "-o", page, "--title", b"\xff\xfe", "--quiet"], timeout=60)
        self.assertEqual(odd.returncode, 0)
        self.parse(page)

    def test_damaged_reports_leave_no_page(self):
        file, report = self.traced("good.json", self.a, "--policy", "budget")
        page, text = self.path("none.html"), file.read_text()
        def changed(**more):
            return json.dumps({**report, **more})
        def trace(**more):
            return changed(trace={**report["trace"], **more})
        texts = [("", "not JSON"), (text[:len(text) // 2], "not JSON"), ("[1, 2]", "not one JSON object"), ("{}", "outcome"),
                 (changed(outcome="fine"), "outcome"), (changed(n="many"), "'n'"), (changed(matrix=7), "matrix"), (trace(levels=7), "levels"),
                 (trace(groups=10**9), "blocks and groups"), (trace(groups=-1), "blocks and groups"), (trace(blocks="x"), "blocks"),
                 (trace(history=[[0, 1], [-1, 2]]), "ascend"), (trace(history=[0]), "pair"), (trace(times=None), "list"),
                 (trace(true_residuals=[{}]), "true residual"), (trace(levels=[{"iteration": 0, "groups": []}]), "add up"),
                 (trace(levels=[{"iteration": 0, "groups": [[10**12, 1, 0, 0]]}]), "add up"),
                 (trace(levels=[{"iteration": 0, "groups": [[report["trace"]["groups"], 0, 0, 0]]}]), "add up"),
                 (trace(levels=[{"iteration": 5, "groups": report["trace"]["levels"][0]["groups"]}, {"iteration": 4, "groups": []}]), "ascend"),
                 (changed(trace=3), "blocks"), ("{" * 100000, "not JSON")]
        for content, words in texts:
            self.fails(words, "report", self.made("damaged.json", content), "-o", page)
            self.assertFalse(page.exists())
        self.fails("cannot be opened", "report", self.path("missing.json"), "-o", page)
        self.fails("needs a report file", "report", "-o", page)
        self.fails("needs -o", "report", file)
        self.fails("cannot be written", "report", file, "-o", self.dir / "nowhere" / "p.html")
        self.fails("one word too many", "report", *[file] * 13, "-o", page)


class Others(Cli):
    def test_gen_lists_and_explains_every_kind(self):
        status, out, err = run("gen", "--list")
        kinds = [l.split()[0] for l in out.splitlines() if l.startswith("  ") and not l.startswith("   ")]
        self.assertIn("stencil3d", kinds)
        self.assertIn("wathen", kinds)
        for kind in kinds:
            status, out, err = run("help", "gen", kind)
            self.assertEqual((status, err), (0, ""), kind)
            self.assertIn("positive definite", out)

    def test_gen_is_quiet_on_request_and_repeatable(self):
        one, two = self.path("1.mtx"), self.path("2.mtx")
        self.assertEqual(run("gen", "wathen", "--nx", "3", "--ny=4", "--seed", "2", "-o", one, "--quiet"), (0, "", ""))
        self.assertIn("rows", run("gen", "wathen", "--nx", "3", "--ny", "4", "--seed", "2", "-o", two)[1])
        self.assertEqual(one.read_bytes(), two.read_bytes())

    def test_convert_in_all_directions_keeps_every_bit(self):
        plain = self.path("p.mtx")
        self.assertEqual(run("convert", self.a, "-o", plain, "--quiet"), (0, "", ""))
        for first in (".mtx.gz", ".npz", ".mtx"):
            for second in (".mtx.gz", ".npz", ".mtx"):
                one, two, three = self.path("1" + first), self.path("2" + second), self.path("3.mtx")
                for source, target in ((self.a, one), (one, two), (two, three)):
                    self.assertEqual(run("convert", source, "-o", target, "--quiet"), (0, "", ""))
                self.assertEqual(three.read_bytes(), plain.read_bytes(), (first, second))

    def test_info_about_the_build(self):
        status, out, err = run("info")
        self.assertEqual((status, err), (0, ""))
        for word in ("version", "compiler", "kernels", "cuda", "threads", "caches", "zlib", "jansson"):
            self.assertIn(word, out)
        about = json.loads(run("info", "--json")[1])
        self.assertIn("portable", about["kernels"])

    def test_info_about_a_policy(self):
        policy = self.path("told.safetensors")
        status, out, err = run("train", self.a, "-o", policy, "--episodes", "4", "--update", "64", "--minibatch", "16", "--seed", "7", "--json")
        self.assertEqual(status, 0, err)
        chosen = json.loads(out)["chosen"]
        self.assertIn(chosen, ("learned", "fixed:f64", "fixed:f32", "fixed:bf16"))
        status, out, err = run("info", policy)
        self.assertEqual((status, err), (0, ""))
        for word in ("tiles", "f64,f32,16", "two layers of 64 units", "time", os.path.basename(self.a)): self.assertIn(word, out)
        told = json.loads(run("info", policy, "--json")[1])
        self.assertEqual((told["policy"], told["seed"], told["chosen"]), (str(policy), "7", chosen))
        self.assertEqual(run("info", self.path("none.safetensors"))[0], 2)
        other = self.path("other-name")
        other.write_bytes(policy.read_bytes())
        told["policy"] = str(other)
        self.assertEqual(json.loads(run("info", other, "--json")[1]), told)
        self.assertEqual(self.solves(self.a, "--policy", f"learned:{other}")["outcome"], "converged")

    def test_info_about_a_matrix(self):
        status, out, err = run("info", self.a)
        self.assertEqual((status, err), (0, ""))
        for word in ("nonzeros", "row lengths", "bandwidth", "symmetry", "diagonal", "bf16", "dominan", "eigenvalues", "CSR", "split", "Tile-CSC",
                     "looks positive definite"):
            self.assertIn(word, out)
        facts = json.loads(run("info", self.a, "--json")[1])
        self.assertEqual((facts["n"], facts["nnz"], facts["looks_spd"]), (self.n, len(self.matrix[1]), 1))
        self.assertEqual(sum(facts["rows_by_bandwidth"]), self.n)
        self.assertEqual(facts["value_max"], max(abs(v) for _, _, v in self.matrix[1]))
        unsymmetric = self.made("u.mtx", Matrices.GENERAL + "2 2 4\n1 1 4\n1 2 1\n2 1 1.5\n2 2 4\n")
        self.assertIn("(1,2)", json.loads(run("info", unsymmetric, "--json")[1])["reason"])
        self.fails("", "info", self.path("missing.mtx"))

    def test_bench(self):
        status, out, err = run("bench", self.a, "--repeat", "2", "--policy", "fixed:f64,fixed:f32")
        self.assertEqual((status, err), (0, ""))
        self.assertIn("fixed:f32", out)
        report = json.loads(run("bench", self.a, "--repeat", "3", "--json")[1])
        self.assertEqual([p["policy"] for p in report["policies"]], ["fixed:f64", "auto"])
        for policy in report["policies"]:
            self.assertEqual(policy["outcome"], "converged")
            self.assertLessEqual(policy["total_s"]["least"], policy["total_s"]["median"])
            self.assertLessEqual(policy["total_s"]["median"], policy["total_s"]["most"])
            self.assertLessEqual(policy["speedup_solve"]["least"], policy["speedup_solve"]["most"])
        self.assertEqual(report["policies"][0]["speedup_solve"]["median"], 1)
        self.fails("policy", "bench", self.a, "--policy", "fixed:f17")


class Interrupts(Cli):
    def start_long_solve(self, *more):
        """A solve that takes long, with its progress on a terminal. Returns the process and the terminal's other end."""
        a = self.dir / "long.mtx"
        if not a.exists():
            self.assertEqual(run("gen", "stencil2d", "--size", "500", "-o", a)[0], 0)
        master, slave = pty.openpty()
        process = subprocess.Popen([HALFTONE, "solve", str(a), "--precond", "none", "-b", "random:1", *map(str, more)], stdout=subprocess.PIPE,
                                   stderr=slave, text=True)
        os.close(slave)
        return process, master

    def wait_for_progress(self, master, seconds=60, word=b"iterations"):
        seen, end = b"", time.monotonic() + seconds
        while time.monotonic() < end:
            if select.select([master], [], [], 1)[0]:
                seen += os.read(master, 4096)
                if word in seen:
                    return seen
        self.fail(f"no progress was seen: {seen}")

    def test_the_first_interrupt_ends_the_solve_with_the_best_iterate(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            x = self.path("x.npy")
            process, master = self.start_long_solve("--json", "-o", x)
            seen = self.wait_for_progress(master)
            process.send_signal(number)
            out, _ = process.communicate(timeout=60)
            os.close(master)
            report = json.loads(out)
            self.assertEqual((process.returncode, report["outcome"]), (1, "interrupted"), out)
            self.assertGreater(report["iterations"], 0)
            self.assertTrue(x.exists())
            self.assertIn(b"[", seen)

    def test_an_interrupt_ends_a_training_soon_and_keeps_what_was_learned(self):
        """While it learns, and while what was learned competes, by a clock that is given two seconds."""
        for word, more in ((b"of 100000 episodes", ("--episodes", "100000")), (b"competing", ("--episodes", "2", "--judge", "time"))):
            policy, state, master_slave = self.path("p.safetensors"), self.path("state"), pty.openpty()
            process = subprocess.Popen([HALFTONE, "train", str(self.a), "-o", str(policy), "--save", str(state), *more], stdout=subprocess.PIPE,
                                       stderr=master_slave[1], text=True)
            os.close(master_slave[1])
            self.wait_for_progress(master_slave[0], word=word)
            begin = time.monotonic()
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=60)
            os.close(master_slave[0])
            self.assertEqual(process.returncode, 1, out)
            self.assertLess(time.monotonic() - begin, 30)
            self.assertIn("interrupted after", out)
            self.assertIn("judged       no", out)
            told = json.loads(run("info", policy, "--json")[1])
            self.assertEqual((told["chosen"], told["contest"]), ("learned", "none: the training was interrupted before it was judged"))
            self.assertEqual(self.solves(self.a, "--policy", f"learned:{policy}")["outcome"], "converged")
            status, out, err = run("train", self.a, "-o", policy, "--resume", state, "--episodes", "1", "--json")
            self.assertEqual((status, json.loads(out)["judged"]), (0, 1), err)

    def test_the_second_interrupt_ends_the_command(self):
        """While it waits for input nothing else can end it first."""
        process = subprocess.Popen([HALFTONE, "solve", "-b", "-", str(self.a)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertIn(process.returncode, (1, 130))

    def test_an_interrupt_ends_what_is_no_solve(self):
        """Reading, also from a pipe that nobody writes to; generating; writing. Status 1, a sentence, and no file is left."""
        pipe = self.path("pipe")
        os.mkfifo(pipe)
        before = set(os.listdir(self.dir))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            for args in (("solve", pipe), ("report", pipe, "-o", "r.html"), ("solve", "-"),
                         ("gen", "stencil3d", "--points", "7", "--size", "300", "-o", "never.mtx.gz")):
                process = subprocess.Popen([HALFTONE, *map(str, args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                           stderr=subprocess.PIPE, text=True, cwd=self.dir)
                time.sleep(0.7)
                process.send_signal(number)
                process.wait(timeout=60)
                err = process.stderr.read()
                process.communicate()
                self.assertEqual((process.returncode, err), (1, "halftone: interrupted\n"), args)
                self.assertEqual(set(os.listdir(self.dir)), before)

    def test_an_interrupt_while_writing_leaves_no_file(self):
        before = set(os.listdir(self.dir))
        process = subprocess.Popen([HALFTONE, "gen", "stencil3d", "--size", "80", "-o", "w.mtx.gz"], stderr=subprocess.PIPE, text=True,
                                   cwd=self.dir)
        end = time.monotonic() + 60  # output_check makes such a file too, and removes it
        while time.monotonic() < end and not any(n.endswith(".tmp") and (self.dir / n).stat().st_size > 0
                                                 for n in os.listdir(self.dir) if (self.dir / n).exists()):
            time.sleep(0.002)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, err), (1, "halftone: interrupted\n"))
        self.assertEqual(set(os.listdir(self.dir)), before)

    def test_no_progress_without_a_terminal_or_when_quiet(self):
        self.assertEqual(run("solve", self.a)[2], "")
        process, master = self.start_long_solve("--quiet", "--max-iterations", "200")
        process.communicate(timeout=60)
        seen = b""
        while select.select([master], [], [], 0.2)[0]:
            try:
                part = os.read(master, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            seen += part
        os.close(master)
        self.assertNotIn(b"iterations  ", seen)


if __name__ == "__main__":
    unittest.main()
