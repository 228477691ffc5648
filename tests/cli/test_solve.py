"""halftone solve: answers, forms of input and options, and systems that are none. SPDX-License-Identifier: BSD-3-Clause"""
import json
import math
import os
import resource
import subprocess
import unittest

from cli import HALFTONE, REQUIRED, run, read_vector, write_vector, multiply, relative_residual, Cli


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

    def test_exact_products_are_none_below_fp64(self):
        a = self.made("hidden.mtx", self.HEAD + "3 3 5\n1 1 1\n2 1 2\n2 2 1\n3 2 1\n3 3 1\n")
        for policy in ("fixed:f64", "fixed:bf16", "auto"):
            self.assertEqual(self.solves(a, "-b", "random:1", "--no-guard", "--policy", policy, status=1)["outcome"], "indefinite")

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


if __name__ == "__main__":
    unittest.main()
