"""halftone bench. SPDX-License-Identifier: BSD-3-Clause"""
import json
import unittest

from cli import run, Cli


class Bench(Cli):
    def test_bench_tells_what_was_not_solved(self):
        a = self.made("negative.mtx", "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 1\n2 2 -1\n")
        self.assertEqual(run("bench", a, "--repeat", "1")[0], 1)
        self.assertEqual(run("bench", self.a, "--repeat", "1")[0], 0)

    def test_a_count_over_several_right_sides_says_so(self):
        b = self.made("two.mtx", "%%MatrixMarket matrix array real general\n144 2\n" + "".join(f"{k % 7 + 1}\n" for k in range(288)))
        self.assertIn("of 2 right-hand sides together", run("bench", self.a, "-b", b, "--repeat", "1")[1])
        out = run("bench", self.a, "--repeat", "1")[1]
        self.assertNotIn("right-hand side", out)
        self.assertIn("medians of 1 interleaved round\n", out)

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


if __name__ == "__main__":
    unittest.main()
