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


if __name__ == "__main__":
    unittest.main()
