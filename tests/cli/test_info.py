"""halftone info: about the build, a policy, a matrix. SPDX-License-Identifier: BSD-3-Clause"""
import json
import os
import unittest

from cli import run, Cli


class Info(Cli):
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

    def test_info_about_the_policy_that_is_carried(self):
        for name in ("learned", "learned:universal"):
            status, out, err = run("info", name)
            self.assertEqual((status, err), (0, ""))
            self.assertIn("window", out)

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
        unsymmetric = self.made("u.mtx", self.GENERAL + "2 2 4\n1 1 4\n1 2 1\n2 1 1.5\n2 2 4\n")
        self.assertIn("(1,2)", json.loads(run("info", unsymmetric, "--json")[1])["reason"])
        self.fails("", "info", self.path("missing.mtx"))


if __name__ == "__main__":
    unittest.main()
