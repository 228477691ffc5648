"""halftone gen and convert. SPDX-License-Identifier: BSD-3-Clause"""
import unittest

from cli import run, Cli


class Gen(Cli):
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


if __name__ == "__main__":
    unittest.main()
