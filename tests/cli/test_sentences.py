"""What the command tells people: advice that helps, counts that are true, words that are explained. Standard library only.
SPDX-License-Identifier: BSD-3-Clause"""
import json
import os
import unittest

from cli import Cli, run


class Sentences(Cli):
    def show(self, *args, status=0, **more):
        got, out, err = run(*args, **more)
        self.assertEqual(got, status, (args, out, err))
        return out

    def line(self, out, label):
        return next(l for l in out.splitlines() if l.startswith(label))

    def test_openmps_variable_is_the_default_of_threads(self):
        def threads(count, *args):
            return json.loads(self.show("info", "--json", *args, env={**os.environ, "OMP_NUM_THREADS": count}))["threads"]
        self.assertEqual(threads("3"), "3, as OMP_NUM_THREADS says")
        self.assertEqual(threads("3", "--threads", "2"), "2")
        self.assertNotIn("OMP", threads("many"))
        self.fails("--threads takes", "info", "--threads", "few")

    def test_a_small_system_has_one_thread(self):
        self.assertEqual(self.solves(self.a, "--threads", "2")["threads"], 1)
        large = self.path("large.npz")
        self.show("gen", "stencil2d", "--size", "300", "-o", large)
        report = self.solves(large, "--threads", "2", "--max-iterations", "5", status=1)
        self.assertEqual(report["threads"], 2)

    def test_the_first_example_of_the_help_is_no_trivial_one(self):
        command = next(l for l in self.show("help").splitlines() if l.startswith("  halftone gen")).split()
        a = self.path("A.mtx")
        self.show(*command[1:-1], a)
        self.assertIn("halftone solve A.mtx -b random:1", self.show("help"))
        self.assertGreater(self.solves(a, "-b", "random:1")["iterations"], 20)

    def test_unknown_names_point_to_a_list_that_has_them(self):
        g = self.path("g.mtx")
        for command in (["gen", "wathen", "--foo", "3", "-o", g], ["gen", "nokind", "-o", g]):
            status, out, err = run(*command)
            self.assertEqual((status, out), (2, ""))
            pointed = err.split("`")[1].split()
            self.assertEqual(pointed[0], "halftone")
            self.assertIn("nx" if "wathen" in err else "wathen", self.show(*pointed[1:]))

    def test_no_far_name_is_meant(self):
        for option in ("--foo", "--colour", "--xyz", "-p"):
            status, _, err = run("solve", self.a, option)
            self.assertEqual(status, 2)
            self.assertNotIn("did you mean", err)
        self.fails("did you mean '--max-iterations'", "solve", self.a, "--max-iter", "5")
        self.fails("did you mean '--precond'", "solve", self.a, "--preconditioner", "none")

    def test_a_vectors_file_is_advised_as_one(self):
        b = self.made("b.txt", "1\n2\n3\n")
        self.fails(["matrix array real general", "'n 1'"], "solve", self.a, "-b", b)
        self.fails("coordinate real symmetric", "solve", b)
        for word in ("random", "rand:1", "random1"):
            self.fails("random:SEED", "solve", self.a, "-b", word)

    def test_limits_are_written_as_whole_numbers(self):
        status, _, err = run("solve", self.a, "--max-iterations", "1e18")
        self.assertEqual(status, 2)
        self.assertNotIn("e+", err)

    def test_a_right_side_of_zeros_has_no_unknown_numbers(self):
        b = self.made("zero.mtx", "%%MatrixMarket matrix array real general\n144 1\n" + "0\n" * 144)
        out = self.show("solve", self.a, "-b", b)
        self.assertNotIn("not known", out)
        self.assertIn("b = 0 has the solution x = 0", self.line(out, "verdict"))

    def test_a_count_over_several_right_sides_says_so(self):
        b = self.made("two.mtx", "%%MatrixMarket matrix array real general\n144 2\n" + "".join(f"{k % 7 + 1}\n" for k in range(288)))
        out = self.show("solve", self.a, "-b", b)
        self.assertIn("iterations over 2 right-hand sides", self.line(out, "verdict"))
        self.assertIn("all right-hand sides together", self.line(out, "work"))

    def test_the_verdict_says_a_count_once(self):
        verdict = self.line(self.show("solve", self.a, "--max-iterations", "7", status=1), "verdict")
        self.assertEqual(verdict.count("7 iterations"), 1)
        self.assertEqual(verdict.count("7"), verdict.split("true residual")[1].count("7") + 1)
        self.assertIn("(iteration_limit, 1 iteration, ", self.line(self.show("solve", self.a, "--max-iterations", "1", status=1), "verdict"))

    def test_info_gives_bounds_and_a_plain_verdict(self):
        out = self.show("info", self.a, "--steps", "9")
        self.assertRegex(self.line(out, "eigenvalues"), r"smallest at most \S+, largest at least \S+ \(9 Lanczos steps\); condition number at least \S+$")
        self.assertIn("within rounding", self.line(out, "dominance"))
        self.assertNotIn("positive definite: positive definite", out)
        self.assertNotIn("condition number", self.show("info", self.made("i.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n2 2 -1\n")))

    def test_info_tells_what_the_split_storage_holds_in_16_bits(self):
        exact = self.path("exact.mtx")
        self.show("gen", "stencil2d", "--size", "12", "-o", exact)
        self.assertIn("exact at 16 bits in the split storage: 100 %", self.show("info", exact))
        self.assertIn("exact at 16 bits in the split storage: 0 %", self.show("info", self.a))
        self.assertEqual(self.solves(exact)["share_exact_16"], json.loads(self.show("info", exact, "--json"))["share_exact_16"])

    def test_quiet_keeps_warnings_to_itself(self):
        nearly = self.made("nearly.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 4\n1 1 2\n1 2 1\n2 1 1.0000000000000002\n2 2 2\n")
        self.assertIn("warning", run("solve", nearly)[2])
        self.assertEqual(run("solve", nearly, "--quiet"), (0, "", ""))

    def test_the_learned_policy_tells_how_many_matrices(self):
        chosen = self.solves(self.a, "--policy", "learned")["policy_chosen"]
        self.assertRegex(chosen, r"episodes on (at least )?\d+ matrices$")

    def test_a_long_list_is_cut_at_a_name(self):
        p, state = self.path("p.safetensors"), self.path("state")
        matrices = [self.path(f"a-matrix-with-a-rather-long-name-{k}.mtx") for k in range(14)]
        for k, matrix in enumerate(matrices):
            self.show("gen", "stencil2d", "--size", 6, "--coefficients", "lognormal", "--seed", k, "-o", matrix)
        self.show("train", *matrices, "-o", p, "--save", state, "--episodes", "1", "--hidden", "1", "--compete", "no")
        for file in (p, state):
            told = json.loads(self.show("info", file, "--json"))["trained_on"]
            self.assertTrue(told.endswith(".mtx, ..."), told)
            self.assertEqual(told.split(", ")[:-1], [m.name for m in matrices[:told.count(",")]])
        self.assertIn(f"on at least {told.count(',')} matrices", self.solves(self.a, "--policy", f"learned:{p}")["policy_chosen"])

    def test_a_verdict_does_not_contradict_the_report(self):
        for rtol in ("0", "1e-300", "1e-17"):
            for more in ([], ["--no-guard", "--policy", "fixed:bf16"], ["--stopping", "paper"]):
                report = self.solves(self.a, "-b", "random:1", "--rtol", rtol, *more, status=1)
                self.assertNotRegex(report["detail"], r"true (one|residual)\D*\d")
                if report["residual_recursive"] > report["tolerance"]:
                    self.assertNotRegex(report["detail"], "(meets|met) the tolerance")

    def test_counts_of_one_are_singular(self):
        one, p = self.made("one.mtx", self.HEAD + "1 1 1\n1 1 2\n"), self.path("p.safetensors")
        out = self.show("solve", self.a) + self.show("solve", one) + self.show("info", one) + self.show("convert", one, "-o", self.path("one.npz")) + self.show("bench", one, "--repeat", "1")
        out += self.show("train", self.a, "-o", p, "--reward", "paper", "--episodes", "1", "--update", "64", "--hidden", "1", "--interval", "1") + self.show("info", p)
        out += self.show("solve", self.a, "--policy", f"learned:{p}") + self.show("solve", self.a, "--max-iterations", "1", status=1)
        self.assertNotRegex(out, r"(?<![\d.,])1 (?!us\b)[a-z]+s\b")
        self.assertNotIn(" 0.0 MB", out)
        self.assertIn("1 row, 1 nonzero, symmetric", out)

    def test_the_manual_explains_the_keys_and_words(self):
        page = self.show("help", "--man").replace("\\-", "-")
        for key in self.solves(self.a):
            if key not in ("matrix", "right_side", "options"):
                self.assertIn(f".B {key}\n", page)
        for section in ("CONFIG FILES", "WORDS OF THE SCREEN", "JSON", "ENVIRONMENT"):
            self.assertIn(f'.SH "{section}"', page)


if __name__ == "__main__":
    unittest.main()
