"""The words around every command: help, version, names and values that are wrong. SPDX-License-Identifier: BSD-3-Clause"""
import unittest

from cli import SOURCE, COMMANDS, run, Cli


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
        for repeat in ("0", "4294967297", "0x1", "", "1.5"):
            self.fails(["--repeat takes a whole number from 1 to", f"'{repeat}'"], "bench", self.a, "--repeat", repeat)
        for hexadecimal in ("0x10", "0X1p4", "-0x1", " 16"):
            for option in ("--rtol", "--max-iterations", "--time-limit"):
                self.fails([f"{option[2:]} takes a number", f"'{hexadecimal}'"], "solve", self.a, option, hexadecimal)
            self.fails("max-iterations takes a number", "solve", self.a, "--config", self.made("c.txt", "max-iterations = 0x10"))
            self.fails("size takes a number", "gen", "stencil2d", "--size", hexadecimal, "-o", self.path("g.mtx"))
            self.fails("episodes takes a number", "train", self.a, "-o", self.path("p"), "--episodes", hexadecimal)
            self.fails("--steps takes", "info", self.a, "--steps", hexadecimal)
            self.fails("--threads takes", "info", self.a, "--threads", hexadecimal)
        self.fails("'f64,budget:0x1p-4'", "train", self.a, "-o", self.path("p"), "--state", "features", "--actions", "f64,budget:0x1p-4")
        self.fails("--steps", "info", self.a, "--steps", "many")
        self.fails("between them", "bench", self.a, "--policy", "auto,,auto")
        self.fails("needs a kind", "gen", "-o", self.path("g.mtx"))
        self.fails("-o", "gen", "wathen")

    def test_an_option_without_effect_is_refused(self):
        g, p = self.path("g.mtx"), self.path("p.safetensors")
        for option, needs, *words in (("--budget-theta", "--policy auto|budget|learned", "solve", self.a, "--policy", "rule", "--budget-theta", "0.1"),
                                      ("--policy-interval", "--policy auto|", "solve", self.a, "--policy", "fixed:f32", "--policy-interval", "4"),
                                      ("--precond-block", "--precond block-jacobi", "solve", self.a, "--precond-block", "4"),
                                      ("--ic-shift", "--precond ic0", "solve", self.a, "--ic-shift", "0.1"),
                                      ("--column-sums", "--format tilecsc or --engine paper, and --policy auto|fixed:f32", "solve", self.a, "--no-column-sums"),
                                      ("--column-sums", "--format tilecsc", "solve", self.a, "--no-column-sums", "--format", "tilecsc", "--policy", "fixed:f64"),
                                      ("--tile-rows", "--format auto|split|tilecsc", "solve", self.a, "--format", "csr", "--tile-rows", "64"),
                                      ("--policy", "--format auto|split|tilecsc; give", "solve", self.a, "--format", "csr", "--policy", "budget"),
                                      ("--trace", "--report", "solve", self.a, "--trace"),
                                      ("--ic-shift", "--precond ic0", "bench", self.a, "--ic-shift", "0.1"),
                                      ("--seed", "--coefficients lognormal|jumps", "gen", "stencil2d", "--seed", "1", "-o", g),
                                      ("--sigma", "--coefficients lognormal", "gen", "fem2d", "--sigma=2", "--coefficients", "jumps", "-o", g),
                                      ("--size", "--nx 0 or --ny 0", "gen", "stencil2d", "--size", "3", "--nx", "3", "--ny", "3", "-o", g),
                                      ("--lanes", "--state paper", "train", self.a, "--state", "features", "--lanes", "8", "-o", p),
                                      ("--steps", "a matrix", "info", "--steps", "3")):
            self.fails([f"{option} has an effect only with {needs}", f"leave {option} out"], *words)
        self.fails("no trace", "bench", self.a, "--trace")
        self.assertEqual(run("solve", self.a, "--trace=no", "--quiet")[0::2], (0, ""))
        self.assertEqual(run("bench", self.a, "--no-trace", "--repeat", "1")[0::2], (0, ""))
        self.fails("leave", "gen", "--list", "wathen")
        self.fails("leave", "help", "--man", "solve")
        self.fails("no kinds", "help", "solve", "wathen")
        self.assertFalse(g.exists() or p.exists())

    def test_an_option_with_an_effect_is_taken(self):
        for options in (["--policy", "budget", "--budget-eta", "0.1"], ["--format", "csr", "--policy", "fixed:f64"], ["--policy", "learned", "--policy-interval", "4"],
                        ["--no-column-sums", "--format", "tilecsc", "--policy", "learned"], ["--no-column-sums", "--format", "tilecsc"]):
            self.solves(self.a, *options)
        self.assertEqual(run("bench", self.a, "--policy", "fixed:f64,budget", "--budget-theta", "0.1", "--repeat", "1")[0::2], (0, ""))
        self.fails("--budget-theta", "bench", self.a, "--policy", "fixed:f64,rule", "--budget-theta", "0.1")
        self.fails("--policy has an effect only with --format", "bench", self.a, "--policy", "fixed:f64,rule", "--format", "csr")
        self.assertEqual(run("bench", self.a, "--repeat", "1", "--format", "csr")[0::2], (0, ""))

    def test_a_config_file_may_say_more_than_has_an_effect(self):
        for line, needs in (("ic-shift = 0.1", "--ic-shift has an effect only with --precond ic0"), ("trace = yes", "--trace has an effect only with --report"),
                            ("policy = budget\nformat = csr", "--policy has an effect only with --format auto|split|tilecsc")):
            self.fails(needs, "solve", self.a, "--config", self.made("vain.txt", line))
        self.fails("no trace", "bench", self.a, "--config", self.made("vain.txt", "trace = yes"))
        config = self.made("c.txt", "ic-shift = 0.1\nprecond = ic0\nrtol = 1e-8\n")
        status, out, err = run("solve", self.a, "--config", config, "--precond", "none")
        self.assertEqual((status, len(err.splitlines())), (0, 1))
        self.assertIn(f"{config}: --ic-shift has an effect only with --precond ic0", err)
        self.assertEqual(run("solve", self.a, "--config", config, "--precond", "none", "--quiet")[2], "")
        self.assertEqual(run("solve", self.a, "--config", self.made("c.txt", "ic-shift = 0.1"), "--precond", "ic0")[2], "")

    def test_a_file_is_named_once(self):
        x, y = self.path("x.mtx"), self.path("y.mtx")
        self.fails(["-o is given twice", str(x), str(y)], "solve", self.a, "-o", x, "-o", y)
        self.fails("--repeat is given twice", "bench", self.a, "--repeat=2", "--repeat", "3")
        self.fails("would be overwritten", "convert", self.a, "-o", self.a)
        self.assertEqual(run("solve", self.a, "-o", x, "-o", x, "--json", "--json")[0], 0)
        self.assertEqual(self.solves(self.a, "--rtol", "1e-3", "--rtol", "1e-8")["options"]["rtol"], 1e-8)

    def test_empty_arguments_are_wrong_not_fatal(self):
        for args in (["solve", ""], ["solve", self.a, "-o", ""], ["solve", self.a, "-b", ""], ["solve", self.a, "--config", ""],
                     ["info", ""], ["gen", "", "-o", "g.mtx"], ["", ""], ["solve", self.a, "--rtol", ""], ["solve", self.a, "--rtol="]):
            status, out, err = run(*args)
            self.assertEqual((status, out, len(err.splitlines())), (2, "", 1), args)


if __name__ == "__main__":
    unittest.main()
