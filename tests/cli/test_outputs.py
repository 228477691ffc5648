"""Files that commands write: whole or not at all, and never over one another. SPDX-License-Identifier: BSD-3-Clause"""
import json
import os
import pathlib
import resource
import signal
import subprocess
import time
import unittest

from cli import HALFTONE, run, read_vector, Cli


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

    def test_threads_that_cannot_be_started(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))
        # gen takes all threads for any size, which solve does not
        status, _, err = run("gen", "stencil2d", "--size", "12", "-o", self.path("never.mtx"), "--quiet", preexec_fn=limit,
                             env={**os.environ, "OMP_NUM_THREADS": "256"})
        if "sanitizer" not in err.lower():
            self.assertEqual(status, 2, err)


if __name__ == "__main__":
    unittest.main()
